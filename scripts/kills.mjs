// A run that is ended again and again, against one that is left alone: rows, files and results must be the same.
//     npm run kills [-- --kills 100 --interrupts 10 --full 10 --keep FOLDER]
// Every stage of the run (its start, each phase of each arm, the report) has the same share of the kills, and within a stage they lie evenly by
// units of work, which scripts/kills/units.mjs counts. Beside SIGKILL some starts meet Ctrl-C, some a full disk. Exit code 1 when anything differs.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { RunStore } from '../dist/store/store.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    interrupts: { type: 'string', default: '10' },
    full: { type: 'string', default: '10' },
    keep: { type: 'string' },
  },
});

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const UNITS = pathToFileURL(fileURLToPath(new URL('kills/units.mjs', import.meta.url))).href;
const PIPELINE = fileURLToPath(new URL('../pipelines/azr-mixed.yaml', import.meta.url));
/** How long a phase has taken, as a cell of the report shows it. */
const DURATION = />\d[\d.]* (?:s|min \d+ s|h \d+ min)</g;
/** All phases, three types of tasks, and every way in which an arm's training goes on. */
const SETTINGS = {
  band: { min: 1, max: 3, of: 4 },
  'label.tasks': 50,
  'label.batch': 30,
  'probe.l2': [0.1],
  arms: {
    base: { reward: 'none' },
    probe: { reward: 'probe', probes: 2 },
    solver: { reward: 'solver' },
    adversarial: { reward: 'probe', adversarial: { every: 2, mine: 6, share: 1 } },
  },
  'train.steps': 5,
  'train.batch': 18,
  'train.checkpointEvery': 2,
  'evaluate.generations': 24,
  'evaluate.batch': 12,
  'evaluate.rescoreEvery': 4,
};

const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'propel-kills-'));
const [whole, broken] = ['whole', 'broken'].map((name) => join(folder, name));
for (const place of [whole, broken]) mkdirSync(place, { recursive: true });
const log = join(folder, 'units.json');

let strangers = 0;
let first = await start(whole, null);
while (wasKilled(first)) {
  // What it had done would not be counted.
  rmSync(join(whole, 'run'), { recursive: true, force: true });
  first = await start(whole, null);
}
if (first.code !== 0)
  fail(`the run that is left alone ended with ${first.code ?? first.signal}: ${first.stderr.slice(-500)}`);
const stages = stagesOf(first);
const expected = outcome(whole);
console.log(`${first.units} units: ${stages.map(({ name, from, to }) => `${name} ${to - from}`).join(', ')}`);

const counts = new Map(stages.map(({ name }) => [name, 0]));
const ended = { kill: 0, interrupt: 0, full: 0 };
for (const { kind, stage, at } of faults()) {
  // From the last thing that a start goes on from to the place of the fault.
  const inStart = stage.name === 'start';
  let units = Math.max(1, inStart ? at : at - goesOnFrom());
  for (;;) {
    const run = await start(broken, { kind, since: inStart ? 'start' : 'opened', units });
    if (run.hit) {
      counts.set(stage.name, counts.get(stage.name) + 1);
      ended[kind] += 1;
      if (values.keep) console.log(`${kind} in ${stage.name} at ${units}: ${run.at}`);
      checkEnd(kind, run);
      break;
    }
    if (wasKilled(run)) continue;
    // A start that goes on has less to do than one that does all: it came to its end first.
    if (run.code !== 0) fail(`ended with ${run.code ?? run.signal} before its ${kind}: ${run.stderr.slice(-500)}`);
    units = Math.floor(Math.min(units, run.units - (inStart ? 0 : run.opened)) * 0.8);
    if (units < 1) fail(`no place for a ${kind} in ${stage.name}`);
  }
}
let last = await start(broken, null);
while (wasKilled(last)) last = await start(broken, null);
if (last.code !== 0) fail(`the last start ended with ${last.code ?? last.signal}: ${last.stderr.slice(-500)}`);
const result = outcome(broken);
const differences = Object.keys({ ...expected, ...result }).filter(
  (key) => !isDeepStrictEqual(expected[key], result[key]),
);
console.log(
  `${ended.kill} kills, ${ended.interrupt} interrupts, ${ended.full} full disks, spread: ${[...counts].map(([name, count]) => `${name} ${count}`).join(', ')}`,
);
if (differences.length > 0)
  fail(`these differ from a run that was left alone (kept in ${folder}): ${differences.join(', ')}`, true);
console.log(
  `rows of ${Object.keys(expected).filter((key) => key.startsWith('rows ')).length} tables, ${Object.keys(expected).filter((key) => key.startsWith('file ')).length} files and the results are those of a run that was left alone`,
);
if (!values.keep) rmSync(folder, { recursive: true });

/** Whether something else than this script has ended a start, as the system does that is short of memory: it counts for nothing. */
function wasKilled({ signal }) {
  if (signal === null) return false;
  console.log(`a start was ended by ${signal} from outside`);
  strangers += 1;
  if (strangers > 20) fail('too many starts are ended from outside');
  return true;
}

/** Places by stage, interleaved so that the run moves on; each kind evenly over stages and within them. */
function faults() {
  const places = ['kill', 'interrupt', 'full'].flatMap((kind) => {
    const count = Number(values[kind === 'full' ? 'full' : `${kind}s`]);
    return stages.flatMap((stage, s) => {
      const share = Math.floor(((s + 1) * count) / stages.length) - Math.floor((s * count) / stages.length);
      return Array.from({ length: share }, (_, i) => {
        const at = stage.from + Math.floor(((i + 0.5) * (stage.to - stage.from)) / share);
        // Kills of a start lie between the others, so that it starts from many states.
        return { kind, stage, at, order: stage.name === 'start' ? ((i + 0.5) * first.units) / share : at };
      });
    });
  });
  return places.sort((a, b) => a.order - b.order);
}

/** Stages by their marks; places are units since the folder was opened, of the start alone since the process began. */
function stagesOf({ marks, opened, units }) {
  const found = [{ name: 'start', from: 0, to: opened }];
  let from = 0;
  for (const { name, at } of marks.filter((mark) => mark.name.startsWith('phase '))) {
    found.push({ name: name.slice('phase '.length).trim(), from, to: at - opened });
    from = at - opened;
  }
  return [...found, { name: 'report', from, to: units - opened }];
}

/** Where the next start goes on, in units of the run that was left alone. */
function goesOnFrom() {
  if (!existsSync(join(broken, 'run', 'propel.db'))) return 0;
  let store;
  try {
    store = RunStore.read(join(broken, 'run'));
  } catch (error) {
    if (/is empty/.test(error.message)) return 0;
    throw error;
  }
  try {
    const isDone = (mark) => {
      const [kind, ...rest] = mark.split(' ');
      if (kind === 'work') return existsSync(join(broken, 'run', 'probes', '.work', rest[0]));
      const [phase, arm, index] = kind === 'mining' || kind === 'checkpoint' ? ['train-generator', ...rest] : rest;
      if (store.phaseFinished(phase, arm)) return true;
      if (kind === 'phase') return false;
      if (kind === 'mining') return store.minings(arm).some(({ step }) => step === Number(index));
      // Training goes back to its last checkpoint.
      if (phase === 'train-generator') return (store.lastCheckpoint(arm)?.step ?? 0) >= Number(index);
      return store.hasBatch({ phase, arm, batch: Number(index) });
    };
    const done = first.marks.filter(({ name }) => isDone(name));
    return done.length === 0 ? 0 : done.at(-1).at - first.opened;
  } finally {
    store.close();
  }
}

function start(place, fault) {
  rmSync(log, { force: true });
  const sets = Object.entries(SETTINGS).flatMap(([key, value]) => ['--set', `${key}=${JSON.stringify(value)}`]);
  const child = spawn(process.execPath, ['--import', UNITS, MAIN, 'run', PIPELINE, '--out', 'run', ...sets], {
    cwd: place,
    env: { ...process.env, PROPEL_CACHE: '', PROPEL_UNITS: JSON.stringify({ log, fault }) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      const counted = existsSync(log) ? JSON.parse(readFileSync(log, 'utf8')) : {};
      const told = {
        kill: signal === 'SIGKILL' && counted.at !== undefined,
        interrupt: /^stopping after/m.test(stderr),
        full: counted.at !== undefined,
      };
      resolve({ code, signal, stderr, ...counted, hit: fault !== null && told[fault.kind] });
    });
  });
}

/** What a start that met a fault says, and leaves. */
function checkEnd(kind, { code, stderr }) {
  if (kind === 'kill') return;
  const lines = stderr.trimEnd().split('\n');
  // A run that could not seal its store at the end has lost nothing, and the next start looks at everything.
  const unsealed = kind === 'full' && code === 0 && !existsSync(join(broken, 'run', 'propel.db.sha256'));
  const allowed = kind === 'interrupt' ? [130, 0] : [1];
  if (!allowed.includes(code) && !unsealed) fail(`${kind}: exit code ${code}: ${stderr.slice(-500)}`);
  if (
    kind === 'full' &&
    !unsealed &&
    !/^propel: no space left on the disk of .*; free some and start again/.test(lines.at(-1))
  )
    fail(`full: the last line is ${lines.at(-1)}`);
  const left = filesOf(join(broken, 'run')).filter((file) => /\.tmp$|propel\.lock/.test(file));
  if (left.length > 0) fail(`${kind} leaves ${left.join(', ')}`);
}

/** Rows by table, digests of files, and results without what is a timing. */
function outcome(place) {
  const run = join(place, 'run');
  const store = RunStore.read(run, { whole: true });
  const rows = store.dumpRows();
  store.close();
  const results = JSON.parse(readFileSync(join(run, 'results.json'), 'utf8'));
  for (const arm of results.arms) delete arm.seconds;
  const digest = (content) => createHash('sha256').update(content).digest('hex');
  const files = filesOf(run).filter((file) => !/^propel\.db|^results\.json$/.test(file));
  const content = (file) => {
    const bytes = readFileSync(join(run, file));
    return file === 'report.html' ? bytes.toString().replaceAll(DURATION, '>seconds<') : bytes;
  };
  return {
    results,
    ...Object.fromEntries(Object.entries(rows).map(([table, own]) => [`rows ${table}`, own])),
    ...Object.fromEntries(files.map((file) => [`file ${file}`, digest(content(file))])),
  };
}

function filesOf(run) {
  if (!existsSync(run)) return [];
  return readdirSync(run, { recursive: true, encoding: 'utf8' })
    .filter((file) => statSync(join(run, file)).isFile())
    .map((file) => relative('.', file))
    .sort();
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
