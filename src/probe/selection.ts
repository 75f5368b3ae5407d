/** Choosing features, head and penalty on a validation part, the same way for probes and baselines. */
import { bandLogits, bandLogLoss, isInBand } from './count-head.js';
import type { HeadKind, LinearHead } from './count-head.js';
import type { Candidate } from './candidates.js';
import { fitHead, HeadFitter } from './fit.js';
import type { Labels } from './labels.js';
import { identityStandardisation, standardisationOf, takeRows } from './matrix.js';
import type { Matrix } from './matrix.js';

export interface Choice {
  readonly candidate: Candidate;
  readonly head: HeadKind;
  readonly l2: number;
  /** Mean −log P of the band on the validation part. */
  readonly validationLoss: number;
  /** Band logits of the validation part, from the fit on the training part that was chosen by. */
  readonly validationLogits: Float64Array;
}

/**
 * The best penalty of each candidate and head on the validation rows, best pair first. The measure is the band's log loss: unlike AUROC
 * it is smooth in few rows, and it holds a logit to its size, which the reward uses.
 */
export async function rankChoices(
  labels: Labels,
  candidates: readonly Candidate[],
  heads: readonly HeadKind[],
  penalties: readonly number[],
  rows: { readonly train: readonly number[]; readonly validation: readonly number[] },
): Promise<Choice[]> {
  const { counts, k, band } = labels;
  const inBand = rows.validation.map((row) => isInBand(counts[row]!, band));
  const best: Choice[] = [];
  for (const candidate of candidates) {
    const features = candidate.features(rows.train);
    const training = takeRows(features, rows.train);
    const validation = takeRows(features, rows.validation);
    for (const head of heads) {
      const problem = { kind: head, k, band, counts: rows.train.map((row) => counts[row]!) };
      const fitter = await HeadFitter.create(problem, training, standardisationFor(candidate, training));
      const tried: Choice[] = [];
      try {
        // From the strongest penalty to the weakest: each fit starts near its end.
        for (const l2 of penalties.toSorted((a, b) => b - a)) {
          const validationLogits = bandLogits(await fitter.fit(l2, 'rough'), validation);
          tried.push({ candidate, head, l2, validationLoss: bandLogLoss(inBand, validationLogits), validationLogits });
        }
      } finally {
        await fitter.release();
      }
      best.push(byLoss(tried)[0]!);
    }
  }
  return byLoss(best);
}

/** Fit a choice on rows. @returns the head and its band logits for every task. */
export async function fitChoice(
  { counts, k, band }: Labels,
  { candidate, head, l2 }: Choice,
  rows: readonly number[],
): Promise<{ head: LinearHead; logits: Float64Array }> {
  const features = candidate.features(rows);
  const training = takeRows(features, rows);
  const problem = { kind: head, k, band, counts: rows.map((row) => counts[row]!) };
  const fitted = await fitHead(problem, training, standardisationFor(candidate, training), l2);
  return { head: fitted, logits: bandLogits(fitted, features) };
}

function standardisationFor({ standardised }: Candidate, training: Matrix) {
  return standardised ? standardisationOf(training) : identityStandardisation(training.columns);
}

/** Ascending by validation loss; equals keep their order. */
export function byLoss(choices: readonly Choice[]): Choice[] {
  return choices.toSorted((a, b) => a.validationLoss - b.validationLoss);
}
