/** `results.json`: what a run measured, one entry an arm. */
import type { Estimate } from '../metrics/coverage.js';
import type { EvaluationSummary, RateSummary, TopTopic } from '../metrics/frontier.js';
import type { Interval } from '../metrics/interval.js';
import type { DuplicateShares, Novelty } from '../metrics/near-duplicates.js';
import type { ReliabilityBin } from '../metrics/probe-metrics.js';
import type { StructuralCoverage, Structure } from '../metrics/structure.js';
import type { EditMoves } from '../metrics/edit-moves.js';
import { writeFileAtomic } from '../store/files.js';
import type { Json, StepRow } from '../store/rows.js';

/** One arm: a generator as it was at the end of its training (or untrained), measured on fresh generations. */
export interface ArmResult {
  readonly name: string;
  readonly seed: number;
  /** Null for an arm that is not trained. */
  readonly training: TrainingEnd | null;
  /** Fresh generations, how many of them are distinct, how many valid. */
  readonly n: number;
  readonly unique: number;
  readonly valid: number;
  /** Valid tasks that lost attempts to failures of the infrastructure: whether they are in band is not known. */
  readonly ungraded: number;
  /** Graded tasks in band. */
  readonly frontier: number;
  /** In band / all but the ungraded (n − ungraded), and its Wilson 95% interval. */
  readonly frontierRate: number;
  readonly frontierInterval: Interval;
  /** Distinct tasks in band / all but the ungraded. */
  readonly uniqueFrontierRate: number;
  /** Valid tasks and tasks in band that are not new: the run has labelled them, or the arm wrote them in its training. */
  readonly seenBefore: { readonly valid: number; readonly frontier: number };
  /** In band / valid tasks that are graded. */
  readonly inBandOfValid: number;
  /** Valid / all. */
  readonly validity: number;
  readonly validityInterval: Interval;
  /** Graded tasks by passed attempts, 0 to K. */
  readonly passCounts: readonly number[];
  readonly selfBleu3: number | null;
  readonly distinct3: number | null;
  readonly topTopic: TopTopic | null;
  readonly diversity: ArmDiversity;
  /** One entry a task type, in the run's order. */
  readonly byType: { readonly [type: string]: RateSummary };
  /**
   * Nats from the reference a sequence, on the samples of the last step, so before its update; of an arm whose checkpoint of an earlier step is
   * measured, on that checkpoint's own. Null for an untrained arm.
   */
  readonly klPerSequence: number | null;
  /** Share of the tokens that the clip moved, in the mean over the steps' last updates; null for an untrained arm. */
  readonly clippedShare: number | null;
  /** Mean probability of the band by the arm's probe over the evaluated valid tasks; null without a probe. */
  readonly claimedInBand: number | null;
  /** In band / valid by the solver, over the same tasks. */
  readonly measuredInBand: number | null;
  /** Graded attempts spent on labels, and within reinforcement learning. */
  readonly solverTrials: { readonly offline: number; readonly inLoop: number };
  /** Of a solver behind an endpoint: attempts at the arm's fresh tasks that brought no answer, and so failed. */
  readonly unanswered?: UnansweredCounts;
  /** Of an adversarial arm: tasks that its training mined (their trials are among those in the loop), and how many were out of band. */
  readonly mined?: { readonly tasks: number; readonly falsePositives: number };
  /** Phase → seconds. */
  readonly seconds: { readonly [phase: string]: number };
}

/** How diverse an arm's valid tasks are, beside Self-BLEU-3, Distinct-3 and the top topic; null where there is no such task. */
export interface ArmDiversity {
  /**
   * Valid tasks that everything which depends on their number is measured on, the same number for all arms: as many as the arm with the
   * fewest has. Texts (Self-BLEU-3, Distinct-3, duplicates) are the first so many, coverage is that of so many in the mean.
   */
  readonly texts: number;
  readonly duplicates: DuplicateShares | null;
  /** Against the tasks that the run has labelled, over all valid tasks; null also when it has labelled none. */
  readonly novelty: Novelty | null;
  /** exp of the entropy over topics. */
  readonly effectiveTopics: Estimate | null;
  /** Of the space of syntax-tree depth × cyclomatic complexity × lines × variables. */
  readonly coverage: StructuralCoverage | null;
  /** Means over all valid tasks. */
  readonly structure: Structure | null;
}

/** How an arm's training ended. */
export interface TrainingEnd {
  /** `budget-spent`: its solver trials; `collapsed`: a stop rule found that it can no longer be trusted. */
  readonly status: 'finished' | 'budget-spent' | 'collapsed';
  /** Why it is not simply finished; else null. */
  readonly reason: string | null;
  readonly steps: number;
  /** The step whose checkpoint is measured; 0: the generator as it was before training. */
  readonly evaluatedStep: number;
}

export interface Results {
  readonly seed: number;
  readonly versions: { readonly [name: string]: Json };
  readonly config: { readonly [key: string]: Json };
  /** Version of the rules that topics are told by. */
  readonly topicRules: string;
  /** What a solver behind an endpoint used over the whole run; absent for a local one. */
  readonly solverAccount?: SolverAccountResult;
  /** What a reader of the figures must know, a line each. */
  readonly warnings: readonly string[];
  readonly arms: readonly ArmResult[];
  /** Trained arms, step by step. */
  readonly curves: readonly ArmTraining[];
  /** The run's probes, then the baselines that they must beat. */
  readonly probes: readonly ProbeReport[];
}

export interface ArmTraining {
  readonly arm: string;
  readonly steps: readonly TrainingStep[];
}

export type TrainingStep = Pick<
  StepRow,
  | 'step'
  | 'rewardMean'
  | 'rewardSd'
  | 'validity'
  | 'klPerSequence'
  | 'gradientNorm'
  | 'loss'
  | 'entropy'
  | 'clippedShare'
  | 'claimedInBand'
  | 'solverTrials'
> & {
  /** What the solver found of the step's samples: in the loop, or re-scored after training; null where it was not asked. */
  readonly measured: MeasuredRate | null;
};

/** Samples in band among those of which it is known, invalid ones too, with the Wilson 95% interval. */
export interface MeasuredRate {
  readonly inBand: number;
  readonly of: number;
  readonly rate: number;
  readonly interval: Interval;
}

/** A probe, or a baseline that it must beat, on held-out labels. */
export interface ProbeReport {
  readonly name: string;
  /** What it reads: layers and pooling, or what the baseline counts. */
  readonly features: string;
  /** Each with its 95% interval. */
  readonly auroc: Estimate;
  readonly averagePrecision: Estimate;
  /** Expected calibration error; null for a baseline that gives no probability. */
  readonly calibrationError: number | null;
  /** Equal-mass bins on held-out labels; empty for what is not drawn. */
  readonly reliability: readonly ReliabilityBin[];
  /** How far edits of a task's text that leave its answer as it was move its logit; null where that was not searched. */
  readonly edits: EditMoves | null;
  /** What speaks against rewarding by it. */
  readonly warnings: readonly string[];
}

/** Attempts without an answer: cut off or without room in the context, without any text, declined by the model. */
export interface UnansweredCounts {
  readonly cutOff: number;
  readonly empty: number;
  readonly refused: number;
}

export interface SolverAccountResult extends UnansweredCounts {
  readonly requests: number;
  readonly retries: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly unmetered: number;
  readonly cost: number | null;
}

/** What an arm's result holds beside the summary of its evaluation. */
export type ArmContext = Pick<
  ArmResult,
  | 'name'
  | 'seed'
  | 'training'
  | 'seenBefore'
  | 'diversity'
  | 'byType'
  | 'klPerSequence'
  | 'clippedShare'
  | 'claimedInBand'
  | 'measuredInBand'
  | 'solverTrials'
  | 'unanswered'
  | 'mined'
  | 'seconds'
>;

/** An arm's entry, fields in the order that `results.json` shows them. */
export function armResult(summary: EvaluationSummary, context: ArmContext): ArmResult {
  return {
    name: context.name,
    seed: context.seed,
    training: context.training,
    n: summary.n,
    unique: summary.unique,
    valid: summary.valid,
    ungraded: summary.ungraded,
    frontier: summary.frontier,
    frontierRate: summary.frontierRate,
    frontierInterval: summary.frontierInterval,
    uniqueFrontierRate: summary.uniqueFrontierRate,
    seenBefore: context.seenBefore,
    inBandOfValid: summary.inBandOfValid,
    validity: summary.validity,
    validityInterval: summary.validityInterval,
    passCounts: summary.passCounts,
    selfBleu3: summary.selfBleu3,
    distinct3: summary.distinct3,
    topTopic: summary.topTopic,
    diversity: context.diversity,
    byType: context.byType,
    klPerSequence: context.klPerSequence,
    clippedShare: context.clippedShare,
    claimedInBand: context.claimedInBand,
    measuredInBand: context.measuredInBand,
    solverTrials: context.solverTrials,
    ...(context.unanswered && { unanswered: context.unanswered }),
    ...(context.mined && { mined: context.mined }),
    seconds: context.seconds,
  };
}

/** Task types of some arms, in the order of their runs. */
export function typesOf(arms: readonly { readonly byType: { readonly [type: string]: unknown } }[]): string[] {
  return [...new Set(arms.flatMap(({ byType }) => Object.keys(byType)))];
}

/** Write `results.json`, whole or not at all. */
export function writeResults(path: string, results: Results): void {
  writeFileAtomic(path, `${JSON.stringify(results, null, 2)}\n`);
}
