// Updates of ours and of PyTorch's by turns, so that whatever else the machine does slows both alike.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const PYTHON = '/usr/bin/python3';

/** How PyTorch computes when nothing else is said. */
export const EAGER = { compile: false, dtype: 'float32' };
/** Loss of a first update, by what PyTorch's products are computed in. */
const TOLERANCE = { float32: 1e-4, bfloat16: 5e-2 };

/**
 * The best of the rounds of each side. `script` prints the loss of a first update, then the milliseconds of one a line of input; `update`
 * returns a promise of ours's loss.
 */
export async function againstTorch({ name, script, folder, update, rounds, env, python, mode }) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const torch = spawn(python, [file, folder], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const lines = createInterface({ input: torch.stdout })[Symbol.asyncIterator]();
    const nextNumber = async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script} ended early`);
      return Number(value);
    };
    const [ourLoss, theirLoss] = [await update(), await nextNumber()];
    if (!(Math.abs(ourLoss - theirLoss) <= TOLERANCE[mode.dtype]))
      throw new Error(`losses differ: ${ourLoss} and PyTorch's ${theirLoss}`);
    const [ours, theirs] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const started = performance.now();
      await update();
      ours.push(performance.now() - started);
      torch.stdin.write('\n');
      theirs.push(await nextNumber());
    }
    torch.stdin.end();
    await once(torch, 'exit');
    const best = { ours: Math.min(...ours), theirs: Math.min(...theirs) };
    const how = `${mode.compile ? 'compiled' : 'eager'}${mode.dtype === 'float32' ? '' : `, ${mode.dtype}`}`;
    return { name, peer: `PyTorch ${how}`, unit: 'ms', ...best, lessIsBetter: true };
  } finally {
    torch.kill();
  }
}
