// Runs the examples of the standard library's documentation on both sandboxes and writes docs/sandbox-library.md: what came out forbidden,
// and what came out otherwise on one than on the other. After a build, on Debian or with the documentation's sources (…/_sources/library):
//     node scripts/library-examples.mjs [folder]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDockerSandbox } from '../dist/sandbox/docker/docker-sandbox.js';
import { createWasmSandbox } from '../dist/sandbox/wasm/wasm-sandbox.js';

const PACKAGE = 'python3.11-doc';
const SOURCES = 'usr/share/doc/python3.11/html/_sources/library';
const output = fileURLToPath(new URL('../docs/sandbox-library.md', import.meta.url));
const limits = { timeoutMs: 10_000, memoryMiB: 256 };
const SHOWN = 90;

/** Blocks of `>>>` examples of one page, each a list of statements. A block ends where its text does. */
function blocksOf(text) {
  const blocks = [];
  let block = [];
  let indent = null;
  const end = () => {
    if (block.length > 0) blocks.push(block);
    block = [];
    indent = null;
  };
  for (const line of text.split('\n')) {
    const first = /^(\s*)>>> ?(.*)$/.exec(line);
    if (first !== null) {
      indent = first[1];
      block.push(first[2]);
    } else if (indent !== null && line.startsWith(`${indent}...`)) {
      block.push(`${block.pop()}\n${line.slice(indent.length).replace(/^\.\.\. ?/, '')}`);
    } else if (line.trim() !== '' && (indent === null || !line.startsWith(indent))) {
      end();
    }
  }
  end();
  return blocks;
}

/** Statements before the block set up what it uses; only what the block itself shows and prints is the result. */
function program(module, before, block) {
  return `
import io, sys
shown = []
space = {'__name__': 'example'}
def show(value):
    if value is not None: shown.append(repr(value))
sys.displayhook = show
sys.stdout = io.StringIO()
def run(sources):
    for source in sources:
        try: exec(compile(source + '\\n', 'example', 'single', dont_inherit=True), space)
        except Exception as error: shown.append(type(error).__name__)
run(['import ${module}', 'from ${module} import *'] if '${module}' else [])
run(${JSON.stringify(before)})
shown.clear()
sys.stdout.seek(0)
sys.stdout.truncate()
run(${JSON.stringify(block)})
def f(): return shown, sys.stdout.getvalue()
`;
}

async function fetchSources() {
  const folder = mkdtempSync(join(tmpdir(), 'propel-examples-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  execFileSync('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', PACKAGE], { cwd: folder, stdio: 'ignore' });
  const [archive] = readdirSync(folder);
  execFileSync('dpkg-deb', ['--extract', archive, 'root'], { cwd: folder });
  return join(folder, 'root', SOURCES);
}

const plain = (text) => (text ?? '').replace(/\b0x[0-9a-f]+/g, '0x…');
const same = (a, b) => a.outcome === b.outcome && plain(a.repr) === plain(b.repr);

/** One page after the other, block by block: what was forbidden sets nothing up for those after it. */
async function runPage(sandboxes, name, text) {
  const [, module = ''] = /^:mod:`!?([\w.]+)`/m.exec(text) ?? [];
  const before = [];
  const rows = [];
  for (const block of blocksOf(text)) {
    const code = program(module, before, block);
    const [wasm, docker] = await Promise.all(
      sandboxes.map(
        async (sandbox) => (await sandbox.run({ code, calls: [''] }, { limits, determinism: false })).calls[0],
      ),
    );
    rows.push({ name, module, block, wasm, docker });
    if (wasm.outcome === 'ok' && docker.outcome === 'ok') before.push(...block);
  }
  return rows;
}

const folder = process.argv[2] ?? (await fetchSources());
const sandboxes = [await createWasmSandbox({ size: 1 }), await createDockerSandbox({ size: 1 })];
const rows = [];
for (const file of readdirSync(folder).sort()) {
  const name = file.replace(/\.rst(\.txt)?$/, '');
  rows.push(...(await runPage(sandboxes, name, readFileSync(join(folder, file), 'utf8'))));
  process.stderr.write(`\r${rows.length} blocks, ${name}\u001B[K`);
}
await Promise.all(sandboxes.map((sandbox) => sandbox.close()));

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('`', "'");
const cut = (text) => cell(text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`);
const brief = ({ outcome, repr, detail }) => cut(outcome === 'ok' ? repr : `${outcome}: ${detail}`);
const forbidden = rows.filter(({ wasm, docker }) => [wasm, docker].some(({ outcome }) => outcome === 'forbidden'));
const counts = new Map();
for (const { name, wasm, docker } of forbidden) {
  const key = `${(wasm.outcome === 'forbidden' ? wasm : docker).detail}`;
  const pages = counts.get(key) ?? new Map();
  pages.set(name, (pages.get(name) ?? 0) + 1);
  counts.set(key, pages);
}
const of = (outcome) =>
  rows.filter(({ wasm, docker }) => wasm.outcome === outcome && docker.outcome === outcome).length;
const different = rows.filter(({ wasm, docker }) => !same(wasm, docker));
const lines = [
  '# The examples of the standard library',
  '',
  "All interactive examples of the library's documentation (Python 3.11's, Debian's package), run block by block on both sandboxes; the",
  'blocks of a page before a block set it up. `node scripts/library-examples.mjs` writes this page.',
  '',
  `${rows.length} blocks: ${of('ok')} ran on both, ${of('forbidden')} forbidden on both, ${different.length} came out otherwise on one than on the other.`,
  '',
  '## What is forbidden',
  '',
  'Why a module is: [the table of modules](sandbox-outcomes.md#modules-that-are-closed).',
  '',
  '| asked for | blocks, by page |',
  '| --- | --- |',
  ...[...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([what, pages]) => `| ${cell(what)} | ${[...pages].map(([page, count]) => `${page} ${count}`).join(', ')} |`),
  '',
  '## What differs',
  '',
  'Versions (3.12 against 3.11), word size, order of sets, clock and addresses; each kind is a case of `differences.ts` or `nondeterministic`.',
  '',
  '| page | first statement | wasm | docker |',
  '| --- | --- | --- | --- |',
  ...different.map(
    ({ name, block, wasm, docker }) => `| ${name} | \`${cut(block[0])}\` | ${brief(wasm)} | ${brief(docker)} |`,
  ),
];
writeFileSync(output, `${lines.join('\n').trimEnd()}\n`);
process.stderr.write(`\n${rows.length} blocks: ${forbidden.length} forbidden, ${different.length} differ\n`);
