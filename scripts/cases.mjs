// Inputs as people have them, each through the command that it is meant for: one line a case, exit code 1 when one comes out wrong.
//   npm run cases                        the cases of tests/cases
//   npm run cases -- FOLDER              the same files elsewhere
// Needs python3, which writes the checkpoint folders.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { parse, stringify } from 'yaml';
import { Tokenizer } from '../dist/lm/tokenizer.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const main = join(root, 'dist', 'cli', 'main.js');
const cases = resolve(process.argv[2] ?? join(root, 'tests', 'cases'));
const work = mkdtempSync(join(tmpdir(), 'propel-cases-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
let wrong = 0;

function report(name, right, seen) {
  if (!right) wrong += 1;
  process.stdout.write(`${right ? 'right' : 'WRONG'}  ${name}: ${seen}\n`);
}

/** A command's exit code and what it printed; standard error is one line where it refuses. */
function propel(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    cwd: root,
    timeout: 120_000,
  });
  return { status, stdout, error: stderr.trim() };
}

// Checkpoint folders.
const folders = join(work, 'folders');
const made = spawnSync('python3', [join(cases, 'make-folders.py'), folders], { encoding: 'utf8' });
if (made.status !== 0) throw new Error(`make-folders.py: ${made.stderr}`);
for (const name of ['small', 'vocabulary-130k', 'int64-buffer', 'eos-in-config-only']) {
  const { status, error } = propel('models', 'check', join(folders, name));
  report(`models check ${name}`, status === 0, status === 0 ? 'opens' : `exit ${status}, ${error}`);
}

// Tokenizers.
const { AutoTokenizer, env } = await import('@huggingface/transformers');
env.allowRemoteModels = false;
env.localModelPath = cases;
const plain = await AutoTokenizer.from_pretrained('bos-not-added', { local_files_only: true });
const ours = (await Tokenizer.open(join(cases, 'bos-not-added'))).prompt('def f(a):');
const theirs = plain.encode('def f(a):');
report(
  'bos-not-added',
  String(ours) === String(theirs),
  `${JSON.stringify(ours)}, transformers.js ${JSON.stringify(theirs)}`,
);
const spaced = await Tokenizer.open(join(folders, 'prefix-space'));
for (const text of ['x.replace("<s>",a)', 'a<s>b', '<s>', 'a </s> b']) {
  const back = spaced.decode(spaced.encode(text));
  report('prefix-space', back === text, `${text} comes back as ${back}`);
}

// Answers.
for (const [type, tasks, answers, expected] of [
  ['code_f', 'tasks-f.jsonl', 'answers-test-block.jsonl', 5],
  ['code_o', 'tasks-o.jsonl', 'answers-end-token.jsonl', 6],
  ['code_o', 'tasks-o.jsonl', 'answers-list-fence.jsonl', 3],
]) {
  const { status, stdout, error } = propel(
    'grade',
    '--type',
    type,
    '--tasks',
    join(cases, tasks),
    '--answers',
    join(cases, answers),
    '--json',
  );
  const verdicts = status === 0 ? JSON.parse(stdout).results.flatMap(({ verdicts: each }) => each) : [];
  const passes = verdicts.filter((verdict) => verdict === 'pass').length;
  report(
    `grade ${answers}`,
    status === 0 && passes === expected && verdicts.length === expected,
    status === 0 ? `${passes} of ${verdicts.length} pass` : error,
  );
}

// Recorded tasks.
const checked = propel('check', join(cases, 'dict-output.jsonl'), '--json');
const outcomes =
  checked.status === 0 || checked.status === 1 ? JSON.parse(checked.stdout).results.map(({ outcome }) => outcome) : [];
report(
  'check dict-output.jsonl',
  outcomes.length === 2 && !outcomes.includes('recorded_output_differs'),
  outcomes.join(', '),
);
for (const file of ['humaneval-like.jsonl', 'mbpp-like.jsonl']) {
  const { status, error } = propel('check', join(cases, file));
  report(`check ${file}`, status === 2 && !error.includes('\n'), `exit ${status}, ${error}`);
}
for (const file of ['lcb-exec-like.jsonl', 'lcb-exec-as-f.jsonl']) {
  const { stdout, error } = propel('check', join(cases, file));
  const told = `${stdout}\n${error}`.split('\n').find((line) => line.includes('NameError'));
  report(`check ${file}`, told !== undefined, told?.trim() ?? 'no NameError');
}

// An endpoint that is not OpenAI's.
async function withEndpoint(mode, ...settings) {
  const port = await freePort();
  const server = spawn(process.execPath, [join(cases, 'fake-endpoint.mjs'), String(port), mode], { stdio: 'ignore' });
  try {
    await answers(port);
    const out = join(work, `endpoint-${mode}-${settings.length}`);
    const configuration = join(work, 'endpoint.yaml');
    copyFileSync(join(cases, 'endpoint.yaml'), configuration);
    const { status, error } = await asynchronous(
      'label',
      local(configuration, port),
      '--out',
      out,
      ...settings.flatMap((setting) => ['--set', setting]),
    );
    const rows = status === 0 ? attemptsOf(out) : [];
    return {
      status,
      error: error.split('\n').at(-1),
      answered: rows.filter(({ answer }) => answer === '2').length,
      all: rows.length,
    };
  } finally {
    server.kill();
    await once(server, 'exit');
  }
}
for (const mode of ['reasoning', 'eos', 'end']) {
  const { status, error, answered, all } = await withEndpoint(mode);
  report(
    `label, mode ${mode}`,
    status === 0 && all > 0 && answered === all,
    status === 0 ? `${answered} of ${all} answers are the model's` : `exit ${status}, ${error}`,
  );
}
const refused = await withEndpoint('max_tokens');
report(
  'label, mode max_tokens',
  refused.status === 2 && /max_completion_tokens/.test(refused.error),
  `exit ${refused.status}, ${refused.error}`,
);
const renamed = await withEndpoint('max_tokens', 'solver.fields.max_tokens=max_completion_tokens');
report(
  'label, mode max_tokens, renamed',
  renamed.status === 0 && renamed.answered === renamed.all && renamed.all > 0,
  renamed.status === 0 ? `${renamed.answered} of ${renamed.all}` : renamed.error,
);

process.exitCode = wrong === 0 ? 0 : 1;

/** The configuration with the endpoint's port; its extends is found in the package. */
function local(file, port) {
  const settings = parse(readFileSync(file, 'utf8'));
  settings.solver.endpoint = `http://127.0.0.1:${port}/v1`;
  writeFileSync(file, stringify({ ...settings, extends: join(root, 'pipelines', basename(settings.extends)) }));
  return file;
}

function attemptsOf(out) {
  const database = new Database(join(out, 'propel.db'), { readonly: true });
  try {
    return database.prepare('SELECT answer, verdict FROM attempts').all();
  } finally {
    database.close();
  }
}

async function asynchronous(...args) {
  const child = spawn(process.execPath, [main, ...args], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  let error = '';
  child.stderr.on('data', (piece) => (error += piece));
  const [status] = await once(child, 'exit');
  return { status, error: error.trim() };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function answers(port) {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      return await fetch(`http://127.0.0.1:${port}/v1/models`);
    } catch {
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  throw new Error('the endpoint does not answer');
}
