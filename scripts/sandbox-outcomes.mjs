// Writes docs/sandbox-outcomes.md: what every case came out as on both sandboxes, here and today. After a build:
//     node scripts/sandbox-outcomes.mjs
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { fileURLToPath } from 'node:url';

const SHOWN = 70;
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const output = fileURLToPath(new URL('../docs/sandbox-outcomes.md', import.meta.url));
const json = execFileSync(process.execPath, [main, 'sandbox', 'test', '--json'], {
  maxBuffer: 1 << 26,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const { passed, sandboxes, notRun, rows } = JSON.parse(json);
if (!passed || Object.keys(notRun).length > 0) throw new Error(`not all passed or ran: ${JSON.stringify(notRun)}`);

const HEADINGS = {
  conformance: ['Conformance', 'Ordinary programs: equal on both.'],
  attack: [
    'Attacks',
    'Equal on both; after each, a program that shows whether the next one is affected came out unaffected.',
  ],
  difference: ['Differences of version and word size', 'All that may differ, each as it must be for its interpreter.'],
};
const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('`', "'");
const shown = (outcomes) => {
  const text = [...new Set(outcomes)].join(', ');
  return `\`${cell(text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`)}\``;
};
const section = (suite) => {
  const own = rows.filter((row) => row.suite === suite);
  const [title, text] = HEADINGS[suite];
  const isSame = ({ results }) => JSON.stringify(results.wasm.outcomes) === JSON.stringify(results.docker.outcomes);
  const same = own.filter(isSame).length;
  return [
    `## ${title}`,
    '',
    `${text} ${own.length} cases, ${same} with the same outcome and result on both.`,
    '',
    '| case | wasm | docker |',
    '| --- | --- | --- |',
    ...own.map(
      (row) =>
        `| ${cell(row.name)} | ${shown(row.results.wasm.outcomes)} | ${isSame(row) ? 'same' : shown(row.results.docker.outcomes)} |`,
    ),
    '',
  ];
};
const versions = sandboxes.map(
  ({ name, versions: of }) =>
    `- ${name}: ${Object.entries(of)
      .map(([key, value]) => `${key} ${value.slice(0, 19)}`)
      .join(', ')}`,
);
const lines = [
  '# What every case came out as',
  '',
  `${new Date().toISOString().slice(0, 10)}, Node.js ${process.versions.node}, Linux ${release()}, ${process.arch}. \`propel sandbox test\` says it of your machine;`,
  '`node scripts/sandbox-outcomes.mjs` writes this page.',
  '',
  ...versions,
  '',
  ...['conformance', 'attack', 'difference'].flatMap(section),
];
writeFileSync(output, `${lines.join('\n').trimEnd()}\n`);
