/** Whether what an execution provider loads at run time is installed, found out before ONNX Runtime tries and complains on stderr. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { EXECUTION_PROVIDERS } from './session.js';
import type { ExecutionProvider } from './session.js';

const CUDA_LIBRARY =
  process.platform === 'win32' ? 'onnxruntime_providers_cuda.dll' : 'libonnxruntime_providers_cuda.so';
const VULKAN_LOADER = 'libvulkan.so.1';

/** The providers that exist on this operating system, a GPU's before the CPU's. */
export function providersHere(): ExecutionProvider[] {
  const only: Readonly<Partial<Record<ExecutionProvider, NodeJS.Platform>>> = { coreml: 'darwin', dml: 'win32' };
  return EXECUTION_PROVIDERS.filter((provider) => (only[provider] ?? process.platform) === process.platform);
}

/** What a provider lacks on this machine and how to get it, in one line; null when it can be tried. */
export function missingLibrary(provider: ExecutionProvider): string | null {
  if (provider === 'coreml' && process.platform !== 'darwin') return 'Core ML exists on macOS only';
  if (provider === 'dml' && process.platform !== 'win32') return 'DirectML exists on Windows only';
  if (provider === 'cuda') {
    if (process.platform === 'darwin') return 'CUDA does not exist on macOS';
    if (!bindingFolders().some((folder) => existsSync(join(folder, CUDA_LIBRARY)))) {
      const script = relative(process.cwd(), join(runtimeFolder(), 'script', 'install.js'));
      return `the CUDA libraries of onnxruntime-node are not installed: run node ${script} --onnxruntime-node-install=cuda12`;
    }
  }
  if (provider === 'webgpu' && process.platform === 'linux' && !loadable(VULKAN_LOADER)) {
    return `no WebGPU adapter found: the Vulkan loader ${VULKAN_LOADER} is not installed`;
  }
  return null;
}

/** The folders of onnxruntime-node's binding for this platform; one for each Node-API version. */
function bindingFolders(): string[] {
  const binaries = join(runtimeFolder(), 'bin');
  if (!existsSync(binaries)) return [];
  return readdirSync(binaries).map((version) => join(binaries, version, process.platform, process.arch));
}

/** Of onnxruntime-node; where this package is a dependency it may lie beside it. */
function runtimeFolder(): string {
  return dirname(dirname(createRequire(import.meta.url).resolve('onnxruntime-node')));
}

/** Whether the dynamic loader finds a library: Node refuses one that is no addon, but only once it has been found. */
function loadable(library: string): boolean {
  try {
    process.dlopen({ exports: {} }, library);
  } catch (error) {
    return !(error as Error).message.includes('cannot open shared object file');
  }
  return true;
}
