/** A probe: which hidden states to read, the head on them, and the scale of its logits. */
import { logitScale } from '../reward/probe-reward.js';
import type { LogitScale } from '../reward/probe-reward.js';
import { bandLogits, bandProbabilities } from './count-head.js';
import type { LinearHead } from './count-head.js';
import { PooledStates, tokenSequences } from './features.js';
import type { FeatureSpec, ReferenceModel } from './features.js';
import type { Matrix } from './matrix.js';

export class Probe {
  readonly spec: FeatureSpec;
  readonly head: LinearHead;
  /** Mean and deviation of the logits on the labelled tasks, for the reward. */
  readonly scale: LogitScale;

  constructor(spec: FeatureSpec, head: LinearHead, scale: LogitScale) {
    this.spec = spec;
    this.head = head;
    this.scale = scale;
  }

  /** Log-odds of the band, one a row of features laid out as `spec` says. */
  logits(features: Matrix): Float64Array {
    return bandLogits(this.head, features);
  }

  bandProbabilities(features: Matrix): Float64Array {
    return bandProbabilities(this.logits(features));
  }
}

/** The scale of logits as a probe's file holds it, so that a probe scores alike before and after it is saved. */
export function float32Scale(logits: ArrayLike<number>): LogitScale {
  const { mean, sd } = logitScale(logits);
  return { mean: Math.fround(mean), sd: Math.fround(sd) };
}

/** Band logits of texts, a list a text with one of each probe, from one pass of the reference model. */
export async function bandLogitsOfTexts(
  model: ReferenceModel,
  probes: readonly Probe[],
  texts: readonly string[],
): Promise<number[][]> {
  const scored = await scoreTexts(model, probes, texts);
  return texts.map((_, i) => scored.map((own) => own[i]!));
}

/** The same, a list a probe. */
export async function scoreTexts(
  model: ReferenceModel,
  probes: readonly Probe[],
  texts: readonly string[],
): Promise<Float64Array[]> {
  if (texts.length === 0) return probes.map(() => new Float64Array(0));
  const specs = probes.map(({ spec }) => spec);
  const states = await PooledStates.extract(model, tokenSequences(model, texts), specs);
  return probes.map((probe) => probe.logits(states.matrix(probe.spec)));
}
