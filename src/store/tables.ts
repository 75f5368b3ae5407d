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
  return {
    run: new Table(database, 'run', RUN, ['seed']),
    batches: new Table(database, 'batches', BATCHES, ['phase', 'arm', 'batch']),
    phases: new Table(database, 'phases', PHASES, ['phase', 'arm']),
    tasks: new Table(database, 'tasks', TASKS, ['phase', 'arm', 'batch', 'item']),
    attempts: new Table(database, 'attempts', ATTEMPTS, ['taskId', 'attempt']),
    labels: new Table(database, 'labels', LABELS, ['taskId']),
    solverUsage: new Table(database, 'solver_usage', SOLVER_USAGE, ['phase', 'arm', 'batch']),
    keptAnswers: new Table(database, 'kept_answers', KEPT_ANSWERS, ['phase', 'arm', 'batch', 'question', 'ordinal']),
    probes: new Table(database, 'probes', PROBES, ['name']),
    steps: new Table(database, 'steps', STEPS, ['arm', 'step']),
    stepScores: new Table(database, 'step_scores', STEP_SCORES, ['taskId']),
    checkpoints: new Table(database, 'checkpoints', CHECKPOINTS, ['arm', 'step']),
    minings: new Table(database, 'minings', MININGS, ['arm', 'step']),
    evaluations: new Table(database, 'evaluations', EVALUATIONS, ['arm']),
  };
}
