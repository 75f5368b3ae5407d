// The engine's benchmarks: an update against PyTorch eager, a rollout in one Loop against a run per token, eight adapters in a rollout
// against one, the memory of a policy with its reference and its update, and that of passes under a budget.
import { adapterRows } from './engine/adapters.mjs';
import { budgetRows, memoryRows } from './engine/memory.mjs';
import { rolloutRows } from './engine/rollout.mjs';
import { updateRows } from './engine/update.mjs';

export async function rows(settings) {
  return [
    ...(await updateRows(settings)),
    ...(await rolloutRows(settings)),
    ...(await adapterRows(settings)),
    ...memoryRows(settings),
    ...budgetRows(settings),
  ];
}
