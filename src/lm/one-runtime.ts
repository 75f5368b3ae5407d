/** That one copy of ONNX Runtime is loaded: a process cannot hold the native libraries of two. */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { UserError } from '../errors.js';

const RUNTIME = 'onnxruntime-node';

/**
 * Transformers.js loads the onnxruntime-node that npm has put beside it: ours, unless the project that this package is installed in has
 * another version of its own.
 * @param file from where packages are looked for
 * @throws UserError when it is another copy than this package's
 */
export function requireOneRuntime(file: string | URL = import.meta.url): void {
  const here = createRequire(file);
  const ours = dirname(here.resolve(`${RUNTIME}/package.json`));
  const theirs = dirname(createRequire(here.resolve('@huggingface/transformers')).resolve(`${RUNTIME}/package.json`));
  if (ours === theirs) return;
  const { version } = here(`${RUNTIME}/package.json`) as { readonly version: string };
  throw new UserError(
    `two copies of ${RUNTIME} are installed, ${ours} and ${theirs}, and a process can load only one: let your package.json ask for no ${RUNTIME}, or for ${version}, and install again`,
  );
}
