/** The length-only baseline as a scorer of its own: what a reward earns that knows nothing of a task but how long it is. */
import type { LogitScale } from '../reward/probe-reward.js';
import { lengthFeatures } from './baselines.js';
import { bandLogits } from './count-head.js';
import type { HeadKind } from './count-head.js';
import { tokenSequences } from './features.js';
import type { ReferenceModel } from './features.js';
import { distinctTexts, inBandOf, requireBothClasses } from './labels.js';
import type { LabelledTask, Labels } from './labels.js';
import { float32Scale } from './probe.js';
import { fitChoice, rankChoices } from './selection.js';
import { assignFolds } from './split.js';

export interface LengthBaseline {
  /** Mean and deviation of the logits on the labels. */
  readonly scale: LogitScale;
  /** Log-odds of the band, one a text. */
  logits(texts: readonly string[]): Float64Array;
}

export interface LengthBaselineSettings {
  readonly head: HeadKind;
  readonly l2: readonly number[];
  /** Share of the labels that chooses head and penalty; the choice is fitted on all. */
  readonly validationShare: number;
  readonly seed: number;
}

/** A baseline may also be a plain logistic: it gets the better of the two. @throws RunError when too few labels are in or out of band. */
export async function fitLengthBaseline(
  reference: ReferenceModel,
  tasks: readonly LabelledTask[],
  { k, band }: Pick<Labels, 'k' | 'band'>,
  { head, l2, validationShare, seed }: LengthBaselineSettings,
): Promise<LengthBaseline> {
  const known = distinctTexts(tasks);
  const labels: Labels = { counts: known.map(({ passes }) => passes), k, band };
  const folds = Math.round(1 / validationShare);
  requireBothClasses(labels, 2 * folds);
  const featuresOf = (some: readonly string[]) => lengthFeatures(some, tokenSequences(reference, some));
  const features = featuresOf(known.map(({ text }) => text));
  const candidate = { name: 'length', features: () => features, standardised: true };
  const chooses = assignFolds(inBandOf(labels), folds, seed);
  const rows = known.map((_, row) => row);
  const parts = {
    train: rows.filter((row) => chooses[row] !== 0),
    validation: rows.filter((row) => chooses[row] === 0),
  };
  const heads: HeadKind[] = head === 'band' ? ['band'] : [head, 'band'];
  const [best] = await rankChoices(labels, [candidate], heads, l2, parts);
  const fitted = await fitChoice(labels, best!, rows);
  return { scale: float32Scale(fitted.logits), logits: (some) => bandLogits(fitted.head, featuresOf(some)) };
}
