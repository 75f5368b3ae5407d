/** A run that is ended at units of its work, in every phase, and started again has the rows, files and results of one that was left alone. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PACKAGE } from './propel-process.js';

/** Every stage of the run has one kill at least; `npm run kills` has ten times as many. */
const FAULTS = ['--kills', '12', '--interrupts', '2', '--full', '3'];

it('ends as one that was left alone, after kills, interrupts and full disks', { timeout: 600_000 }, async () => {
  const child = spawn(process.execPath, [join(PACKAGE, 'scripts', 'kills.mjs'), ...FAULTS], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(said).toMatch(
    /\n12 kills, 2 interrupts, 3 full disks, spread: start [1-9]\d*, label [1-9].*, report [1-9]\d*\nrows of \d+ tables, \d+ files and the results are those of a run that was left alone\n$/,
  );
  expect(code, said).toBe(0);
});
