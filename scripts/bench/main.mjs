// Benchmarks, as ratios in one run: absolutes depend on the machine. Both sides take turns, and the best of the rounds counts, on one
// thread unless told otherwise, since what else the machine does only ever adds time. `npm run bench`, or after a build
//     node scripts/bench/main.mjs [--json] [--threads N] [--rounds N] [PART…]
// Every other `.mjs` file of this folder is a part. A part exports `rows({threads, rounds})`: a row a measurement, {name, peer, unit, ours,
// theirs, lessIsBetter?}, or {name, notRun: why}. A measurement without a peer leaves out `peer` and `theirs`.
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const self = fileURLToPath(import.meta.url);
const parts = readdirSync(new URL('.', import.meta.url))
  .filter((file) => file.endsWith('.mjs') && file !== basename(self))
  .map((file) => basename(file, '.mjs'));

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '7' },
  },
});
const settings = { threads: Number(options.threads), rounds: Number(options.rounds) };
const unknown = positionals.find((part) => !parts.includes(part));
if (unknown || !(settings.threads >= 1) || !(settings.rounds >= 1)) {
  console.error(
    unknown
      ? `no benchmark '${unknown}'; there are ${parts.join(', ')}`
      : '--threads and --rounds take whole numbers above 0',
  );
  process.exit(2);
}

const measured = [];
for (const part of positionals.length ? positionals : parts) {
  const { rows } = await import(`./${part}.mjs`);
  console.error(`measuring: ${part}`);
  for (const row of await rows(settings)) measured.push({ part, ...row, ratio: ratioOf(row) });
}
if (options.json) console.log(JSON.stringify({ ...settings, node: process.version, rows: measured }, null, 2));
else printTable(measured);

/** How many times better ours is; null without a peer. */
function ratioOf({ ours, theirs, lessIsBetter }) {
  if (theirs === undefined) return null;
  return lessIsBetter ? theirs / ours : ours / theirs;
}

function printTable(rows) {
  const number = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3));
  const cells = rows.map(({ name, notRun, ratio, ours, theirs, unit, peer }) => {
    if (notRun) return [name, '', `not run: ${notRun}`];
    if (ratio === null) return [name, '', `${number(ours)} ${unit}`];
    return [name, `${ratio.toFixed(2)} ×`, `${number(ours)} against ${number(theirs)} ${unit} (${peer})`];
  });
  const width = (column) => Math.max(...cells.map((row) => row[column].length));
  const [first, second] = [width(0), width(1)];
  for (const [name, ratio, detail] of cells) console.log(`${name.padEnd(first)}  ${ratio.padStart(second)}  ${detail}`);
}
