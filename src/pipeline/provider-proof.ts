/** What `propel doctor` shows of an execution provider: its gradients, its step of a model against cpu's, and where each node runs. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isRight, ModelTrial } from '../lm/provider-trial.js';
import { missingLibrary } from '../onnx/availability.js';
import { inType } from '../onnx/compute-type.js';
import { COMPUTE_TYPES } from '../onnx/provider-types.js';
import type { ComputeType } from '../onnx/compute-type.js';
import { countPlacements, unexpectedOnCpu } from '../onnx/placements.js';
import { failureReason, testProvider } from '../onnx/self-test.js';
import type { ExecutionProvider } from '../onnx/session.js';

export interface ProviderProof {
  readonly provider: ExecutionProvider;
  readonly status: 'ok' | 'not available' | 'failed';
  readonly detail: string;
  /** Nodes of the model's step by where they ran; null where it did not run. */
  readonly nodes: Readonly<Record<string, number>> | null;
  /** Operators that ran on the CPU and should not have, with how many nodes of each. */
  readonly unexpected: Readonly<Record<string, number>>;
}

const THREADS = 2;

/** Prove a provider on a model, in this process. `folder` null: without a model, by the self-test alone. */
export async function proveProvider(provider: ExecutionProvider, folder: string | null): Promise<ProviderProof> {
  const unproven = { provider, nodes: null, unexpected: {} };
  const { passed, gradientError, detail } = await testProvider(provider);
  if (!passed) return { ...unproven, status: gradientError === null ? 'not available' : 'failed', detail };
  if (folder === null) return { ...unproven, status: 'ok', detail };
  const trial = await ModelTrial.open(folder, THREADS);
  try {
    const step = await trial.try(provider, 'float32', true);
    const { gradientError: error, milliseconds, placements } = step;
    const unexpected: Record<string, number> = {};
    if (provider !== 'cpu') {
      for (const { operator } of unexpectedOnCpu(placements)) unexpected[operator] = (unexpected[operator] ?? 0) + 1;
    }
    const narrow: string[] = [];
    for (const type of COMPUTE_TYPES[provider].slice(1)) narrow.push(await proveType(provider, type, trial));
    return {
      provider,
      status: isRight(step) ? 'ok' : 'failed',
      detail: [
        detail,
        `a model's step differs from cpu's by ${error.toExponential(1)} relative and takes ${milliseconds.toFixed(0)} ms`,
        ...narrow,
      ].join('; '),
      nodes: Object.fromEntries(countPlacements(placements)),
      unexpected,
    };
  } catch (error) {
    return {
      ...unproven,
      status: 'failed',
      detail: `it cannot run a model: ${(error as Error).message.split('\n')[0]}`,
    };
  } finally {
    await trial.release();
  }
}

/** What comes of a provider's products in a narrower type; where it has none of it, that does not count against the provider. */
async function proveType(provider: ExecutionProvider, type: ComputeType, trial: ModelTrial): Promise<string> {
  const { passed, detail } = await testProvider(provider, type);
  if (!passed) return detail;
  try {
    const step = await trial.try(provider, type);
    const error = `${step.gradientError.toExponential(1)} relative`;
    return inType(type, `${isRight(step) ? error : `wrong by ${error}`}, ${step.milliseconds.toFixed(0)} ms`);
  } catch (error) {
    return inType(type, `it cannot run a model: ${failureReason(error as Error)}`);
  }
}

const runFile = promisify(execFile);
const TIMEOUT_MS = 300_000;

/** The proof in a process of its own: a driver may write to standard error, hang, or crash. */
export async function proveProviderApart(provider: ExecutionProvider, folder: string | null): Promise<ProviderProof> {
  const unproven = { provider, nodes: null, unexpected: {} };
  const missing = missingLibrary(provider);
  if (missing !== null) return { ...unproven, status: 'not available', detail: missing };
  const script = fileURLToPath(new URL('./provider-proof-worker.js', import.meta.url));
  try {
    const options = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
    const { stdout } = await runFile(process.execPath, [script, provider, folder ?? ''], options);
    return JSON.parse(stdout) as ProviderProof;
  } catch (error) {
    const { killed, signal, code } = error as { killed?: boolean; signal?: string | null; code?: number | string };
    const how = killed ? `did not end within ${TIMEOUT_MS / 1000} s` : `ended by ${signal ?? `exit code ${code}`}`;
    return { ...unproven, status: 'failed', detail: `the self-test ${how}` };
  }
}
