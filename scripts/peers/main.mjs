// The product beside the programs that people use it with: real packages, in a virtual environment that is kept outside the checkout.
//     npm run peers                    all parts
//     npm run peers -- trl verl        some
//     npm run peers -- --list
//     npm run peers -- --write trl     and write the figures to docs/peers.md
// An environment is made with pip where it is not there yet (PROPEL_PEERS, default ~/.cache/propel-peers); where that cannot be done the part is
// `not run`, with why, and the exit code is 1 like that of a part that fails.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MEASURES } from './measures.mjs';
import { ODDITIES } from './oddities.mjs';
import { writePage } from './page.mjs';
import { RELEASED } from './released.mjs';
import { RELEASED_RUN } from './released-run.mjs';
import { TORCH } from './torch.mjs';
import { TRAINERS } from './trainers.mjs';
import { PEFT, TRANSFORMERS } from './transformers.mjs';
import { VLLM } from './vllm.mjs';

/** The peer could not be had. */
class NotRun extends Error {}

const PARTS = [
  ...TRANSFORMERS,
  ...ODDITIES,
  ...PEFT,
  ...RELEASED,
  ...RELEASED_RUN,
  ...TRAINERS,
  ...VLLM,
  ...MEASURES,
  ...TORCH,
];

const { values, positionals } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !PARTS.some((part) => part.name === name));
if (unknown !== undefined) {
  console.error(`no part ${unknown}; there are ${PARTS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
if (values.list) {
  for (const { name, what } of PARTS) console.log(`${name.padEnd(14)}${what}`);
  process.exit(0);
}

const results = [];
for (const part of PARTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  const folder = mkdtempSync(join(tmpdir(), 'propel-peers-'));
  const began = performance.now();
  try {
    const python = environment(part.environment);
    const figures = await part.run({ executable: python, python: (args) => ask(python, args, folder), folder });
    results.push({ part: part.name, outcome: 'holds', figures });
  } catch (error) {
    results.push({
      part: part.name,
      outcome: error instanceof NotRun ? 'not run' : 'fails',
      figures: { why: error.message },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const last = results.at(-1);
  last.seconds = Math.round((performance.now() - began) / 1000);
  if (!values.json)
    console.log(`${last.part.padEnd(14)}${last.outcome.padEnd(9)}${inWords(last.figures)} (${last.seconds} s)`);
}
if (values.json) console.log(JSON.stringify(results, null, 2));
if (values.write) writePage(results, PARTS);
process.exitCode = results.every(({ outcome }) => outcome === 'holds') ? 0 : 1;

function inWords(figures) {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
}

/** The Python of an environment with these requirements, made where it is not there. A change of them makes another. */
function environment(name) {
  const read = (file) => readFileSync(fileURLToPath(new URL(file, import.meta.url)), 'utf8');
  const [requirements, alone] = [read(`${name}.txt`), read(`${name}-alone.txt`)];
  const torch = /^torch==\S+$/m.exec(requirements)?.[0];
  const digest = createHash('sha256').update(requirements).update(alone).digest('hex').slice(0, 12);
  const all = process.env.PROPEL_PEERS ?? join(homedir(), '.cache', 'propel-peers');
  const place = join(all, `${name}-${digest}`);
  const python = join(place, 'bin', 'python');
  if (existsSync(join(place, 'complete'))) return python;
  console.error(`making ${place}`);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(all, { recursive: true });
  const pip = (...args) => [python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...args]];
  const file = join(all, `${name}.requirements`);
  for (const [command, args, content] of [
    ['python3', ['-m', 'venv', place]],
    // First and by itself, so that nothing takes a build for other hardware.
    ...(torch ? [pip(torch)] : []),
    [...pip('-r', file), requirements],
    // What names other versions of the above than it needs.
    ...(alone ? [[...pip('--no-deps', '-r', file), alone]] : []),
  ]) {
    if (content !== undefined) writeFileSync(file, content);
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
    if (status !== 0)
      throw new NotRun(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
  }
  writeFileSync(join(place, 'complete'), '');
  renameSync(file, join(place, 'requirements.txt'));
  return python;
}

/** What a Python program of this folder prints as its last line, JSON. */
function ask(python, [file, ...args], cwd) {
  const script = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(python, [script, ...args], {
    cwd,
    env: {
      ...process.env,
      OMP_NUM_THREADS: '1',
      HF_HUB_OFFLINE: '1',
      PYTHONDONTWRITEBYTECODE: '1',
      TOKENIZERS_PARALLELISM: 'false',
    },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr = (stderr + chunk).slice(-4000)));
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(stdout.trimEnd().split('\n').at(-1)));
      else reject(new Error(stderr.trim().split('\n').at(-1) || `ended with ${code}`));
    });
  });
}
