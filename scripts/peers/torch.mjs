// The updates of `npm run bench` beside the current PyTorch in all its modes. What comes out is printed as it is: ratios depend on the machine.
import { spawnSync } from 'node:child_process';
import { updateRows } from '../bench/engine/update.mjs';

const ROUNDS = Number(process.env.PROPEL_PEERS_ROUNDS ?? 5);

export const TORCH = [
  {
    name: 'torch',
    what: `updates of the benchmark against PyTorch, eager and compiled, float32 and bfloat16, best of ${ROUNDS}: times faster than it`,
    environment: 'trainers',
    async run({ executable }) {
      const figures = {};
      const hasCompiler = spawnSync('g++', ['--version']).status === 0;
      for (const compile of [false, true]) {
        for (const dtype of ['float32', 'bfloat16']) {
          const how = `${compile ? 'compiled' : 'eager'} ${dtype}`;
          if (compile && !hasCompiler) {
            figures[how] = 'not run: g++ is missing';
            continue;
          }
          const mode = { compile, dtype };
          for (const { name, ours, theirs, notRun } of await updateRows({
            threads: 1,
            rounds: ROUNDS,
            python: executable,
            mode,
          })) {
            if (notRun) throw new Error(notRun);
            const ratio = theirs / ours;
            const words = ratio < 1 ? ` (PyTorch wins by ${(1 / ratio).toFixed(2)} ×)` : '';
            console.log(
              `  ${how.padEnd(18)}${ratio.toFixed(2)} × ${ours.toFixed(0)} against ${theirs.toFixed(0)} ms${words}  ${name}`,
            );
            figures[`${how}, ${name.split(':')[0]}${name.includes('256') ? ' 4 × 256' : ''}`] = `${ratio.toFixed(2)} ×`;
          }
        }
      }
      return figures;
    },
  },
];
