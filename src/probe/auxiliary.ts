/** The auxiliary probe of adversarial co-evolution: an ensemble member fitted again, with what has been mined beside the labels. */
import { isInBand } from './count-head.js';
import { PooledStates, tokenSequences } from './features.js';
import type { ReferenceModel } from './features.js';
import { fitHead } from './fit.js';
import { distinctTexts } from './labels.js';
import type { LabelledTask } from './labels.js';
import { standardisationOf } from './matrix.js';
import { float32Scale, Probe } from './probe.js';

/**
 * Fit a probe on the labels and all mined tasks with their true solve counts, so that mined tasks out of band, which the probes took for
 * useful, are its negatives. Features, head and penalty are the member's own: nothing is chosen again. Its logits are scaled on the labels
 * alone, as every member's are, so that standardised logits can be compared.
 */
export async function fitAuxiliaryProbe(
  reference: ReferenceModel,
  member: Probe,
  l2: number,
  labels: readonly LabelledTask[],
  mined: readonly LabelledTask[],
): Promise<Probe> {
  const { spec, head } = member;
  const known = distinctTexts(labels);
  const tasks = [...known, ...mined];
  const sequences = tokenSequences(
    reference,
    tasks.map(({ text }) => text),
  );
  const features = (await PooledStates.extract(reference, sequences, [spec])).matrix(spec);
  const problem = { kind: head.kind, k: head.k, band: head.band, counts: tasks.map(({ passes }) => passes) };
  const fitted = await fitHead(problem, features, standardisationOf(features), l2);
  const logits = new Probe(spec, fitted, member.scale).logits(features);
  return new Probe(spec, fitted, float32Scale(logits.subarray(0, known.length)));
}

/** How many of mined tasks were no tasks at the edge after all. */
export function countFalsePositives(mined: readonly LabelledTask[], { head }: Pick<Probe, 'head'>): number {
  return mined.filter(({ passes }) => !isInBand(passes, head.band)).length;
}
