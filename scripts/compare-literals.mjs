// Reads drawn texts as CPython and as the host's reader does, and compares: what is a literal, its repr, and == of pairs.
//   npm run build && node scripts/compare-literals.mjs [pairs] [seed]
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tryParseLiteral } from '../dist/domain/azr/literal.js';
import { pythonRepr } from '../dist/domain/azr/value-text.js';
import { valuesEqual } from '../dist/domain/azr/value.js';

const SHOWN = 20;
const [pairs = '60000', seed = '1'] = process.argv.slice(2);
const script = fileURLToPath(new URL('fixtures/literals.py', import.meta.url));
const python = spawn(process.env.PYTHON ?? 'python3', [script, '--pairs', pairs, seed], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise((resolve, reject) => python.on('error', reject).on('close', resolve));

/** As CPython says it: null for no literal, `set` where a set of several items has an order that is not ours to know. */
function shown(value, expected) {
  if (value === null) return null;
  return expected === 'set' ? 'set' : pythonRepr(value);
}

const counts = { pairs: 0, literals: 0, equal: 0, different: 0 };
for await (const line of createInterface({ input: python.stdout })) {
  const [a, reprA, b, reprB, equal] = JSON.parse(line);
  counts.pairs += 1;
  counts.literals += (reprA !== null) + (reprB !== null);
  counts.equal += equal;
  const [left, right] = [tryParseLiteral(a), tryParseLiteral(b)];
  const ours = [shown(left, reprA), shown(right, reprB), left !== null && right !== null && valuesEqual(left, right)];
  const theirs = [reprA, reprB, equal];
  if (ours.every((each, i) => each === theirs[i])) continue;
  counts.different += 1;
  if (counts.different <= SHOWN) console.log(JSON.stringify({ a, b, python: theirs, ours }));
}
const code = await ended;
console.log(
  `${counts.pairs} pairs, ${counts.literals} of ${2 * counts.pairs} texts literals, ${counts.equal} pairs equal: ${counts.different} differences`,
);
process.exitCode = code === 0 && counts.pairs === Number(pairs) && counts.different === 0 ? 0 : 1;
