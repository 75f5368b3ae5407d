/** What a plan's estimates rest on: a run that was made, or a short timing of this machine. */
import { availableParallelism } from 'node:os';
import { UserError } from '../errors.js';
import type { CodeTask } from '../domain/azr/index.js';
import type { Domain } from '../domain/domain.js';
import type { Tokenizer } from '../lm/tokenizer.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import type { Phase } from '../store/rows.js';
import { RunStore } from '../store/store.js';
import type { Config } from './config.js';
import { rescoredArm } from './evaluate.js';
import { LABELS_FROM } from './label.js';
import type { Expectations } from './plan-work.js';

/** Seconds of a run's phases: a generation of label and evaluate with its attempts, a label of train-probe, a trial of re-score. */
export interface RunRates {
  readonly label: number | null;
  readonly 'train-probe': number | null;
  readonly evaluate: number | null;
  readonly 're-score': number | null;
  /** Reward → seconds a sample. */
  readonly training: ReadonlyMap<string, number>;
}

/** Seconds, of one task's check and of one answer's grading. */
export interface SandboxRates {
  readonly check: number;
  readonly grade: number;
}

export interface RunBasis {
  readonly rates: RunRates;
  readonly expected: Partial<Pick<Expectations, 'validity' | 'taskTokens' | 'answerTokens'>>;
}

/** Text of answers whose tokens are counted. */
const ANSWERED_TASKS = 50;

/** @throws UserError when the folder holds no run, or one of other models or another provider */
export function runBasis(folder: string, config: Config, solver: Tokenizer | null): RunBasis {
  const store = RunStore.read(folder);
  try {
    const run = store.run();
    if (run === null) throw new UserError(`${folder} holds no run yet`);
    const made = run.config as unknown as Config;
    for (const key of ['models', 'engine', 'sandbox'] as const) {
      if (JSON.stringify(made[key]) === JSON.stringify(config[key])) continue;
      throw new UserError(`${folder} was run with other ${key}: its rates say nothing of this configuration`);
    }
    return basisOf(store, made, solver);
  } finally {
    store.close();
  }
}

/** What a run has taken so far, and what came out. @param solver the tokenizer of a local solver */
export function basisOf(store: RunStore, made: Config, solver: Tokenizer | null): RunBasis {
  return { rates: ratesOf(store, made), expected: expectationsOf(store, made, solver) };
}

function ratesOf(store: RunStore, { arms }: Config): RunRates {
  const names = Object.keys(arms);
  const isImported = store.run()?.versions[LABELS_FROM] !== undefined;
  const per = (seconds: number, units: number): number | null => (units > 0 && seconds > 0 ? seconds / units : null);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const rescored = names.flatMap((arm) => store.steps(arm).map(({ step }) => rescoredArm(arm, step)));
  const training = new Map<string, number>();
  for (const reward of new Set(names.map((arm) => arms[arm]!.reward))) {
    const alike = names.filter((arm) => arms[arm]!.reward === reward);
    const seconds = sum(alike.map((arm) => store.secondsOf('train-generator', arm)));
    const rate = per(seconds, sum(alike.map((arm) => store.countTasks({ phase: 'train-generator', arm }))));
    if (rate !== null) training.set(reward, rate);
  }
  return {
    // Labels that were imported took nobody's writing.
    label: isImported ? null : per(store.secondsOf('label', ''), store.countTasks({ phase: 'label' })),
    'train-probe': per(store.secondsOf('train-probe', ''), store.labelledTasks({ phase: 'label' }).length),
    evaluate: per(
      sum(names.map((arm) => store.secondsOf('evaluate', arm))),
      sum(names.map((arm) => store.countTasks({ phase: 'evaluate', arm }))),
    ),
    're-score': per(
      sum(rescored.map((arm) => store.secondsOf('evaluate', arm))),
      sum(rescored.map((arm) => store.countTrials('evaluate', arm))),
    ),
    training,
  };
}

function expectationsOf(store: RunStore, { arms }: Config, solver: Tokenizer | null): RunBasis['expected'] {
  const names = Object.keys(arms);
  const share = (phase: Phase, of: readonly string[]): number | null => {
    const all = of.flatMap((arm) => store.tasks({ phase, arm }));
    return all.length > 0 ? all.filter(({ valid }) => valid).length / all.length : null;
  };
  const label = share('label', ['']);
  const train = share('train-generator', names);
  const evaluate = share('evaluate', names);
  const known = label ?? evaluate ?? train;
  if (known === null) return {};
  const tasks = [
    ...store.tasks({ phase: 'label' }),
    ...names.flatMap((arm) => store.tasks({ phase: 'train-generator', arm })),
  ];
  const taskTokens = tasks.reduce((sum, { tokens }) => sum + tokens, 0) / Math.max(1, tasks.length);
  const answerTokens = meanAnswer(store, solver);
  return {
    validity: { label: label ?? known, train: train ?? known, evaluate: evaluate ?? known },
    ...(taskTokens > 0 ? { taskTokens } : {}),
    ...(answerTokens === null ? {} : { answerTokens }),
  };
}

/** As an endpoint counted them, or of some answers by the solver's tokenizer; null where neither is. */
function meanAnswer(store: RunStore, solver: Tokenizer | null): number | null {
  const usage = store.solverUsage().reduce((sum, { completionTokens }) => sum + completionTokens, 0);
  const trials = (['label', 'train-generator', 'evaluate'] as const).reduce(
    (n, phase) => n + store.countTrials(phase),
    0,
  );
  if (usage > 0 && trials > 0) return usage / trials;
  if (solver === null) return null;
  const labelled = store.labelledTasks({ phase: 'label' }).slice(0, ANSWERED_TASKS);
  const answers = labelled.flatMap(({ id }) =>
    store.attempts(id).map(({ answer }) => solver.encode(answer).length + 1),
  );
  return answers.length > 0 ? answers.reduce((a, b) => a + b, 0) / answers.length : null;
}

/** A small task of each type, its answer filled in as a check would. */
export function sampleTask(type: CodeTask['type'], inputs: number, shown: number, name = 0): CodeTask {
  const snippet = `def f(x, n):\n    return [i * n + ${name} for i in x]`;
  if (type !== 'code_f') return { type, snippet, input: '[1, 2, 3], 2', output: '[2, 4, 6]' };
  const calls = Array.from({ length: inputs }, (_, i) => `[1, 2, ${i}], 2`);
  return { type, snippet, inputs: calls, outputs: calls.map((_, i) => `[2, 4, ${2 * i}]`), message: '', shown };
}

/** Tasks that are checked to time it. */
const TIMED_TASKS = 24;

/** Time checks and gradings of small tasks. */
export async function measureSandbox(
  domain: Domain<CodeTask>,
  sandbox: Sandbox,
  { domain: { induction }, sandbox: { kind } }: Config,
): Promise<SandboxRates> {
  const types = domain.kinds as readonly CodeTask['type'][];
  const tasks = Array.from({ length: TIMED_TASKS }, (_, i) =>
    sampleTask(types[i % types.length]!, induction.inputs, induction.shown, i),
  );
  const threads = kind === 'wasm' ? Math.min(sandbox.size, availableParallelism()) : null;
  // Workers start with the first.
  await domain.check(tasks.slice(0, sandbox.size), sandbox);
  const check = (await secondsOf(() => domain.check(tasks, sandbox), threads)) / tasks.length;
  const answered = tasks.slice(0, types.length);
  const answer = '```python\ndef f(x, n):\n    return x\n```\n```output\n[1]\n```\n```input\n[1], 2\n```';
  const grade = await secondsOf(async () => {
    for (const task of answered)
      await domain.grade(
        task,
        Array.from({ length: sandbox.size }, () => answer),
        sandbox,
      );
  }, threads);
  return { check, grade: grade / (answered.length * sandbox.size) };
}

/** Elapsed; of so many threads of this process that work, their own time, which other programs do not make longer. */
async function secondsOf(work: () => Promise<unknown>, threads: number | null): Promise<number> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  await work();
  const elapsed = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return threads === null ? elapsed : Math.min(elapsed, (user + system) / 1e6 / threads);
}
