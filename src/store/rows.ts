/** The rows of the run store as the rest of the house sees them. */

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** What a run is: its seed, the resolved configuration, and the versions that made it. */
export interface Run {
  readonly seed: number;
  readonly config: { readonly [key: string]: Json };
  readonly versions: { readonly [key: string]: Json };
}

/** The phases of a run, in the order they are worked through. */
export const PHASES = ['label', 'train-probe', 'train-generator', 'evaluate'] as const;
export type Phase = (typeof PHASES)[number];

/** A batch of one arm in one phase; a phase that all arms share has arm `''`. In reinforcement learning the batch is the step. */
export interface BatchKey {
  readonly phase: Phase;
  readonly arm: string;
  readonly batch: number;
}

/**
 * A program's shape: depth of its syntax tree, cyclomatic complexity (1 + decision points), lines that are not blank, and distinct
 * names that it assigns.
 */
export interface TaskStructure {
  readonly depth: number;
  readonly cyclomatic: number;
  readonly lines: number;
  readonly variables: number;
}

/** A completion of the generator and what the check said of it. */
export interface TaskRow extends BatchKey {
  /** See `taskId`. */
  readonly id: string;
  /** Place in the batch. */
  readonly item: number;
  /** The kind of task that the completion was asked for, whatever came of it. */
  readonly type: string;
  /** What its sampling was given: the batch's rows of one seed, in the order of their items, are one rollout. Null of an imported task. */
  readonly seed: number | null;
  readonly completion: string;
  /** Tokens of the completion. */
  readonly tokens: number;
  readonly valid: boolean;
  readonly outcome: string;
  readonly detail: string;
  readonly topic: string;
  /** What the syntax tree measures; null when there is none. */
  readonly structure: TaskStructure | null;
  /** The text that probe and reference model read; null unless valid. */
  readonly rendered: string | null;
  /** The parsed task; null when the completion could not be parsed. */
  readonly task: Json;
  /** The answer, as the sandbox computed it, of several calls a JSON list; null when invalid. */
  readonly output: string | null;
}

/** One answer of the solver. An `error` is the infrastructure's and counts for nothing. */
export interface AttemptRow {
  readonly taskId: string;
  readonly attempt: number;
  /** What the solver's sampling was given, of an endpoint the request: the batch's attempts of one seed are one rollout. Null of what was not drawn. */
  readonly seed: number | null;
  /** Its place among the samples of that seed. */
  readonly draw: number | null;
  readonly answer: string;
  readonly verdict: 'pass' | 'fail' | 'error';
}

/** A valid task with all K attempts graded. */
export interface LabelRow {
  readonly taskId: string;
  readonly passes: number;
  readonly k: number;
  /** What the label is for: `label` to train probes (each splits them anew), `evaluate`, or `re-score` of a training step. */
  readonly split: string;
}

/** What a solver behind an endpoint used for the attempts of one batch. */
export interface SolverUsageRow extends BatchKey {
  readonly requests: number;
  /** Requests sent again, because one before had failed. */
  readonly retries: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Answered requests whose response lacked a token count. */
  readonly unmetered: number;
  /** Attempts without an answer: cut off or without room, without any text, declined by the model. */
  readonly cutOff: number;
  readonly empty: number;
  readonly refused: number;
}

/** A response of an endpoint to a question of a batch that is not committed yet. */
export interface KeptAnswerRow extends BatchKey {
  /** Names all that determines the answers. */
  readonly question: string;
  /** Counts the question's responses. */
  readonly ordinal: number;
  readonly response: Json;
}

export interface ProbeRow {
  readonly name: string;
  readonly card: Json;
  /** Relative to the run folder. */
  readonly path: string;
  readonly sha256: string;
}

/** One step of reinforcement learning. */
export interface StepRow {
  readonly arm: string;
  /** From 1. */
  readonly step: number;
  readonly rewardMean: number;
  readonly rewardSd: number;
  /** Valid / all. */
  readonly validity: number;
  /** Nats from the reference, summed over a sequence, mean over sequences. */
  readonly klPerSequence: number;
  /** Global norm before clipping. */
  readonly gradientNorm: number;
  readonly loss: number;
  /** Nats a token. */
  readonly entropy: number;
  /** Share of the tokens that the clip moved, in the last of the step's updates; 0 of a single one, whose ratio is 1; null where it was not kept, before version 6. */
  readonly clippedShare: number | null;
  /** Mean probability of the band over valid tasks, by the probe; null without one. */
  readonly claimedInBand: number | null;
  /** In band / valid, by the solver, where it was asked. */
  readonly measuredInBand: number | null;
  readonly solverTrials: number;
  readonly proposeSeconds: number;
  readonly checkSeconds: number;
  readonly scoreSeconds: number;
  readonly updateSeconds: number;
}

/** What one task of a step earned. */
export interface StepScoreRow {
  readonly taskId: string;
  readonly arm: string;
  readonly step: number;
  /** Probe name → logit; null when no probe saw the task. */
  readonly logits: { readonly [probe: string]: number } | null;
  readonly reward: number;
  readonly advantage: number;
}

export interface CheckpointRow {
  readonly arm: string;
  /** The last step that it holds. */
  readonly step: number;
  /** Relative to the run folder. */
  readonly path: string;
  readonly sha256: string;
}

/** What an adversarial arm mined after a step: tasks that its probes scored highest, attempted by the solver. */
export interface MiningRow {
  readonly arm: string;
  /** The last step before it. */
  readonly step: number;
  /** Tasks with all K attempts graded; their labels' split is `mined`. */
  readonly mined: number;
  /** Of them out of band. */
  readonly falsePositives: number;
  readonly solverTrials: number;
  /** The auxiliary probe fitted on the labels and all that the arm has mined, relative to the run folder. */
  readonly path: string;
  readonly sha256: string;
  readonly elapsedSeconds: number;
}

/** Which tasks to read; without `arm` those of every arm. */
export interface TaskFilter {
  readonly phase: Phase;
  readonly arm?: string;
  readonly batch?: number;
  readonly valid?: boolean;
}

/** The id of a task: its place in the work, so that it is the same in every run of a seed, and ids sort as the work went. */
export function taskId(key: BatchKey, item: number): string {
  return `${key.phase}/${key.arm}/${padded(key.batch)}/${padded(item)}`;
}

function padded(index: number): string {
  return String(index).padStart(6, '0');
}
