// The engine's benchmarks: an update against PyTorch eager, a rollout in one Loop against a run per token.
import { rolloutRows } from './engine/rollout.mjs';
import { updateRows } from './engine/update.mjs';

export async function rows(settings) {
  return [...(await updateRows(settings)), ...(await rolloutRows(settings))];
}
