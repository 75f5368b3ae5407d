// A real vLLM, on a CPU, as the solver of `propel label`: the micro-world's solver served, beside the same solver run here.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RunStore } from '../../dist/store/store.js';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(PACKAGE, 'dist', 'cli', 'main.js');
const SITE = fileURLToPath(new URL('vllm-site', import.meta.url));
const SOLVER = join(PACKAGE, 'data', 'micro-world', 'solver');
const MODEL = 'micro-solver';
const POSITIONS = 256;
/** Attempts at a task, of the pipeline's band. */
const K = 8;
const TASKS = { pass: 300, greedy: 200 };
/** Milliseconds that the killed server is away, its own start not counted. */
const AWAY = Number(process.env.PROPEL_PEERS_AWAY ?? 120_000);
/** Requests of the shortest question: before the work, and by those who wait for the server. */
const TRIALS = 4;
/** A start takes a minute on a busy machine. */
const START = 600_000;
/** Of χ²: what chance gives once in a hundred times. */
const LEAST_P = 0.01;

export const VLLM = [
  {
    name: 'vllm',
    what: 'the micro-world’s solver served by vLLM behind propel label: greedy answers, pass counts, defaults of its own, killed and restarted',
    environment: 'vllm',
    async run({ executable, folder }) {
      const local = join(folder, 'local');
      label(local, ['label.tasks', TASKS.pass]);
      const localGreedy = join(folder, 'local-greedy');
      label(localGreedy, ...greedy());
      const figures = {};
      const faults = [];
      const compared = (name, run) => {
        const { p, passed } = passCounts(local, run);
        figures[name] = `pass rate ${passed.join(' and ')}, χ² p = ${p.toFixed(3)}`;
        if (!(p > LEAST_P)) faults.push(`${name}: pass counts differ, p = ${p}`);
      };

      let server = await serve(executable, SOLVER, folder);
      try {
        for (const [name, more] of Object.entries({ texts: [], 'token ids': [['solver.tokenizer', SOLVER]] })) {
          const run = join(folder, `greedy-${name.replace(' ', '-')}`);
          label(run, ...greedy(), ...server.settings, ...more);
          const { equal, all } = sameAnswers(localGreedy, run);
          figures[`greedy, ${name}`] = `${equal} of ${all} answers equal`;
          if (equal !== all) faults.push(`greedy, ${name}: ${all - equal} of ${all} answers differ`);
        }
        const run = join(folder, 'served');
        label(run, ['label.tasks', TASKS.pass], ...server.settings);
        compared('served', run);

        const killed = join(folder, 'killed');
        const before = server.answered();
        const labelling = labelAside(killed, ['label.tasks', TASKS.pass], ['label.batch', 512], ...server.settings);
        const answered = await until(() => keptResponses(killed) >= TASKS.pass / 4 && keptResponses(killed));
        server.kill();
        const first = server.answered() - before;
        await sleep(AWAY);
        server = await serve(executable, SOLVER, folder, server.port);
        await labelling;
        const billed = first + server.answered();
        const { attempts, errors } = account(killed);
        figures.killed = `after ${answered} of ${TASKS.pass} answered questions, away ${Math.round(server.awayFor / 1000)} s: ${attempts} attempts, ${errors} lost, ${billed} requests that the servers answered, trials included`;
        if (errors > 0 || attempts !== TASKS.pass * K)
          faults.push(`killed: ${errors} of ${attempts} attempts are lost`);
        if (billed > TASKS.pass + TRIALS)
          faults.push(`killed: the servers answered ${billed} requests for ${TASKS.pass} questions`);
        compared('killed and restarted', killed);
      } finally {
        server.kill();
      }

      // A model whose own generation_config.json narrows sampling.
      const narrow = join(folder, 'narrow');
      mkdirSync(narrow);
      for (const file of readdirSync(SOLVER)) copyFileSync(join(SOLVER, file), join(narrow, file));
      const config = join(narrow, 'generation_config.json');
      writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(config, 'utf8')), top_k: 2, top_p: 0.5 }));
      server = await serve(executable, narrow, folder);
      try {
        const run = join(folder, 'narrowed');
        label(run, ['label.tasks', TASKS.pass], ...server.settings);
        compared('generation_config.json with top_k 2', run);
      } finally {
        server.kill();
      }
      if (faults.length > 0) throw new Error(`${faults.join('; ')} (${JSON.stringify(figures)})`);
      return figures;
    },
  },
];

const greedy = () => [
  ['label.tasks', TASKS.greedy],
  ['solver.temperature', 0],
  ['band', '{min: 1, max: 1, of: 1}'],
];

const labelArguments = (out, settings) => [
  MAIN,
  'label',
  '--out',
  out,
  ...settings.flatMap(([name, value]) => ['--set', `${name}=${value}`]),
];

function label(out, ...settings) {
  const { status, stderr } = spawnSync(process.execPath, labelArguments(out, settings), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`propel label: ${stderr.trim().split('\n').at(-1)}`);
}

/** The same, while the caller goes on. */
async function labelAside(out, ...settings) {
  const child = spawn(process.execPath, labelArguments(out, settings), { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors = (errors + chunk).slice(-4000)));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`propel label: ${errors.trim().split('\n').at(-1)}`);
}

async function serve(python, model, folder, port) {
  const place = port ?? (await freePort());
  const log = join(folder, `vllm-${Date.now()}.log`);
  const lib = dirname(dirname(python));
  const iomp = findFile(join(lib, 'lib'), 'libiomp5.so');
  const began = performance.now();
  const child = spawn(
    python,
    // Without chunked prefill, in which its CPU build dies of a seed.
    `-m vllm.entrypoints.cli.main serve ${model} --served-model-name ${MODEL} --dtype float32 --max-model-len ${POSITIONS} --enforce-eager --port ${place} --host 127.0.0.1 --max-num-batched-tokens 32768`.split(
      ' ',
    ),
    {
      stdio: ['ignore', openSync(log, 'w'), openSync(log, 'a')],
      detached: true,
      env: {
        ...process.env,
        PYTHONPATH: SITE,
        ...(iomp && { LD_PRELOAD: iomp }),
        HF_HUB_OFFLINE: '1',
        OMP_NUM_THREADS: '1',
        KMP_BLOCKTIME: '1',
        VLLM_CPU_KVCACHE_SPACE: '1',
        VLLM_CPU_OMP_THREADS_BIND: 'nobind',
        VLLM_WORKER_MULTIPROC_METHOD: 'spawn',
        VLLM_NO_USAGE_STATS: '1',
      },
    },
  );
  let ended = false;
  child.once('exit', () => (ended = true));
  const kill = () => {
    if (ended || child.pid === undefined) return;
    try {
      // With the processes that it has started.
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has gone by itself.
    }
  };
  const url = `http://127.0.0.1:${place}`;
  try {
    await until(async () => {
      if (ended) throw new Error(`vLLM ended: ${readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' / ')}`);
      return fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    }, START);
  } catch (error) {
    kill();
    throw error;
  }
  const settings = [
    ['models.solver', 'null'],
    ['solver.endpoint', `${url}/v1`],
    ['solver.model', MODEL],
  ];
  const answered = () => readFileSync(log, 'utf8').split('"POST /v1/completions HTTP/1.1" 200').length - 1;
  return { port: place, settings, kill, answered, awayFor: AWAY + performance.now() - began };
}

function findFile(folder, name) {
  if (!existsSync(folder)) return null;
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((file) => file.endsWith(name));
  return found ? join(folder, found) : null;
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function until(condition, most = START) {
  const end = performance.now() + most;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > end) throw new Error('waited for too long');
    await sleep(200);
  }
}

function inStore(run, read) {
  const store = RunStore.read(run);
  try {
    return read(store);
  } finally {
    store.close();
  }
}

function keptResponses(run) {
  try {
    return inStore(run, (store) => store.keptAnswers({ phase: 'label', arm: '', batch: 0 }).length);
  } catch {
    return 0;
  }
}

/** Passes of K → tasks, in each run, and how likely so great a difference is where there is none. */
function passCounts(first, second) {
  const counts = [first, second].map((run) => {
    const histogram = Array(K + 1).fill(0);
    for (const { passes } of inStore(run, (store) => store.labelledTasks({ phase: 'label' }))) histogram[passes]++;
    return histogram;
  });
  const tasks = counts.map((histogram) => histogram.reduce((sum, n) => sum + n, 0));
  const passed = counts.map(
    (histogram, i) => `${((100 * histogram.reduce((sum, n, k) => sum + n * k, 0)) / (K * tasks[i])).toFixed(1)}%`,
  );
  return { p: chiSquareP(counts), passed };
}

/** Pearson's test that two rows of counts are of one distribution; columns of few are put together with the next. */
function chiSquareP(rows) {
  const columns = [];
  let open = [0, 0];
  for (let i = 0; i < rows[0].length; i++) {
    open = open.map((n, row) => n + rows[row][i]);
    if (open[0] + open[1] < 10) continue;
    columns.push(open);
    open = [0, 0];
  }
  if (open[0] + open[1] > 0) columns.push(columns.pop().map((n, row) => n + open[row]));
  const sums = rows.map((_, row) => columns.reduce((sum, column) => sum + column[row], 0));
  const all = sums[0] + sums[1];
  let statistic = 0;
  for (const column of columns) {
    column.forEach((n, row) => {
      const expected = ((column[0] + column[1]) * sums[row]) / all;
      statistic += (n - expected) ** 2 / expected;
    });
  }
  return upperGamma((columns.length - 1) / 2, statistic / 2);
}

/** Regularised upper incomplete gamma function of half-integer a, by its recurrence. */
function upperGamma(a, x) {
  let [q, term, b] = Number.isInteger(a) ? [Math.exp(-x), Math.exp(-x), 1] : [erfc(Math.sqrt(x)), 0, 0.5];
  if (!Number.isInteger(a)) term = (2 * Math.sqrt(x) * Math.exp(-x)) / Math.sqrt(Math.PI);
  else term = x * Math.exp(-x);
  for (; b < a; b++) {
    q += term;
    term *= x / (b + 1);
  }
  return q;
}

/** Abramowitz and Stegun 7.1.26: within 1.5e-7. */
function erfc(x) {
  const t = 1 / (1 + 0.3275911 * x);
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return poly * Math.exp(-x * x);
}

/** Of the same tasks, attempts with the same text. */
function sameAnswers(first, second) {
  const answers = (run) =>
    inStore(run, (store) => {
      const tasks = store.labelledTasks({ phase: 'label' });
      return new Map(tasks.map(({ id, rendered }) => [rendered, store.attempts(id)[0].answer]));
    });
  const [ours, theirs] = [answers(first), answers(second)];
  const both = [...theirs.keys()].filter((task) => ours.has(task)).slice(0, TASKS.greedy);
  return { equal: both.filter((task) => ours.get(task) === theirs.get(task)).length, all: both.length };
}

function account(run) {
  return inStore(run, (store) => {
    const attempts = store.labelledTasks({ phase: 'label' }).flatMap(({ id }) => store.attempts(id));
    return {
      attempts: attempts.length,
      errors: attempts.filter(({ verdict }) => verdict === 'error').length + K * store.countUngraded('label'),
    };
  });
}
