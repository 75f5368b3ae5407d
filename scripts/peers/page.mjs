// docs/peers.md: of each part the figures of its last run with `--write`.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../docs/peers.md', import.meta.url));
const HEAD = `# Beside the programs that people use

What \`npm run peers -- --write [PART…]\` printed last of each part. \`npm run peers -- --list\` says what a part compares; a part fails where anything
differs beyond its tolerance, save \`torch\`, whose ratios depend on the machine.
`;

/** Replace what the page has of these parts; of parts that failed or were not run too. */
export function writePage(results, parts) {
  const sections = new Map();
  if (existsSync(PAGE)) {
    for (const section of readFileSync(PAGE, 'utf8').split(/^## /m).slice(1))
      sections.set(section.split('\n')[0], `## ${section.trimEnd()}\n`);
  }
  for (const { part, outcome, seconds, figures } of results) {
    const { what, environment } = parts.find(({ name }) => name === part);
    const rows = Object.entries(figures).map(([name, value]) => [cell(name), cell(value)]);
    sections.set(
      part,
      `## ${part}\n\n${upper(what)}. ${upper(outcome)}, ${seconds} s, with ${versions(environment)}; ${cpus()[0].model}, ${availableParallelism()} cores.\n\n` +
        `| | |\n| --- | --- |\n${rows.map((row) => `| ${row.join(' | ')} |\n`).join('')}`,
    );
  }
  const known = parts.map(({ name }) => sections.get(name)).filter((section) => section !== undefined);
  writeFileSync(PAGE, [HEAD, ...known].join('\n'));
}

const cell = (value) =>
  String(value)
    .replaceAll('|', String.raw`\|`)
    .replaceAll('\n', ' ');
const upper = (text) => text[0].toUpperCase() + text.slice(1);

/** The packages that the environment is asked for. */
function versions(environment) {
  const texts = [`${environment}.txt`, `${environment}-alone.txt`].map((file) =>
    readFileSync(fileURLToPath(new URL(file, import.meta.url)), 'utf8'),
  );
  const pinned = texts.join('\n').match(/^[\w.-]+==\S+/gm);
  return pinned.map((one) => one.replace('==', ' ')).join(', ');
}
