/** The tables by name: which fields each row has and how they are stored. */
import type Database from 'better-sqlite3';
import type {
  AttemptRow,
  BatchKey,
  CheckpointRow,
  Json,
  KeptAnswerRow,
  LabelRow,
  MiningRow,
  Phase,
  ProbeRow,
  Run,
  StepRow,
  SolverUsageRow,
  StepScoreRow,
  TaskRow,
} from './rows.js';
import { READABLE_VERSIONS } from './schema.js';
import { type Columns, Table } from './table.js';

interface BatchRow extends BatchKey {
  readonly elapsedSeconds: number;
}

interface PhaseRow {
  readonly phase: Phase;
  readonly arm: string;
  readonly elapsedSeconds: number;
}

interface EvaluationRow {
  readonly arm: string;
  readonly measured: Json;
}

const RUN: Columns<Run> = { seed: 'plain', config: 'json', versions: 'json' };
const BATCHES: Columns<BatchRow> = { phase: 'plain', arm: 'plain', batch: 'plain', elapsedSeconds: 'plain' };
const PHASES: Columns<PhaseRow> = { phase: 'plain', arm: 'plain', elapsedSeconds: 'plain' };
const TASKS: Columns<TaskRow> = {
  id: 'plain',
  phase: 'plain',
  arm: 'plain',
  batch: 'plain',
  item: 'plain',
  type: 'plain',
  seed: 'plain',
  completion: 'plain',
  tokens: 'plain',
  valid: 'boolean',
  outcome: 'plain',
  detail: 'plain',
  topic: 'plain',
  structure: 'json',
  rendered: 'plain',
  task: 'json',
  output: 'plain',
};
const ATTEMPTS: Columns<AttemptRow> = {
  taskId: 'plain',
  attempt: 'plain',
  seed: 'plain',
  draw: 'plain',
  answer: 'plain',
  verdict: 'plain',
};
const LABELS: Columns<LabelRow> = { taskId: 'plain', passes: 'plain', k: 'plain', split: 'plain' };
const SOLVER_USAGE: Columns<SolverUsageRow> = {
  phase: 'plain',
  arm: 'plain',
  batch: 'plain',
  requests: 'plain',
  retries: 'plain',
  promptTokens: 'plain',
  completionTokens: 'plain',
  unmetered: 'plain',
  cutOff: 'plain',
  empty: 'plain',
  refused: 'plain',
};
const KEPT_ANSWERS: Columns<KeptAnswerRow> = {
  phase: 'plain',
  arm: 'plain',
  batch: 'plain',
  question: 'plain',
  ordinal: 'plain',
  response: 'json',
};
const PROBES: Columns<ProbeRow> = { name: 'plain', card: 'json', path: 'plain', sha256: 'plain' };
const STEPS: Columns<StepRow> = {
  arm: 'plain',
  step: 'plain',
  rewardMean: 'plain',
  rewardSd: 'plain',
  validity: 'plain',
  klPerSequence: 'plain',
  gradientNorm: 'plain',
  loss: 'plain',
  entropy: 'plain',
  clippedShare: 'plain',
  claimedInBand: 'plain',
  measuredInBand: 'plain',
  solverTrials: 'plain',
  proposeSeconds: 'plain',
  checkSeconds: 'plain',
  scoreSeconds: 'plain',
  updateSeconds: 'plain',
};
const STEP_SCORES: Columns<StepScoreRow> = {
  taskId: 'plain',
  arm: 'plain',
  step: 'plain',
  logits: 'json',
  reward: 'plain',
  advantage: 'plain',
};
const CHECKPOINTS: Columns<CheckpointRow> = { arm: 'plain', step: 'plain', path: 'plain', sha256: 'plain' };
const MININGS: Columns<MiningRow> = {
  arm: 'plain',
  step: 'plain',
  mined: 'plain',
  falsePositives: 'plain',
  solverTrials: 'plain',
  path: 'plain',
  sha256: 'plain',
  elapsedSeconds: 'plain',
};
const EVALUATIONS: Columns<EvaluationRow> = { arm: 'plain', measured: 'json' };

export type Tables = ReturnType<typeof openTables>;

export function openTables(database: Database.Database) {
  const version = database.pragma('user_version', { simple: true }) as number;
  const older = READABLE_VERSIONS.get(version);
  const table = <Row extends object>(name: string, columns: Columns<Row>, key: readonly (keyof Row & string)[]) =>
    new Table(database, name, columns, key, older ? { absent: older[name] ?? [] } : null);
  return {
    run: table('run', RUN, ['seed']),
    batches: table('batches', BATCHES, ['phase', 'arm', 'batch']),
    phases: table('phases', PHASES, ['phase', 'arm']),
    tasks: table('tasks', TASKS, ['phase', 'arm', 'batch', 'item']),
    attempts: table('attempts', ATTEMPTS, ['taskId', 'attempt']),
    labels: table('labels', LABELS, ['taskId']),
    solverUsage: table('solver_usage', SOLVER_USAGE, ['phase', 'arm', 'batch']),
    keptAnswers: table('kept_answers', KEPT_ANSWERS, ['phase', 'arm', 'batch', 'question', 'ordinal']),
    probes: table('probes', PROBES, ['name']),
    steps: table('steps', STEPS, ['arm', 'step']),
    stepScores: table('step_scores', STEP_SCORES, ['taskId']),
    checkpoints: table('checkpoints', CHECKPOINTS, ['arm', 'step']),
    minings: table('minings', MININGS, ['arm', 'step']),
    evaluations: table('evaluations', EVALUATIONS, ['arm']),
  };
}
