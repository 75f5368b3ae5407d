/** What is chosen among: a probe's features, and those of the baselines that it has to beat. */
import { lengthFeatures, ngramFeatures } from './baselines.js';
import { formatSpec, PooledStates, tokenSequences } from './features.js';
import type { FeatureSpec, ReferenceModel, Resumable } from './features.js';
import type { Matrix } from './matrix.js';

/** One way to make features of all tasks. */
export interface Candidate {
  readonly name: string;
  /** [tasks, columns]; what is learnt from the tasks (a vocabulary) is learnt from the training rows alone. */
  readonly features: (training: readonly number[]) => Matrix;
  /** Whether columns are brought to mean 0 and deviation 1; counts of tokens are left as they are. */
  readonly standardised: boolean;
}

/** `probe`: one a spec, in their order. */
export type Candidates = Readonly<Record<'probe' | 'length' | 'ngram', readonly Candidate[]>>;

/** The candidates for texts; the reference model reads each text once. */
export async function candidatesFor(
  reference: ReferenceModel,
  texts: readonly string[],
  specs: readonly FeatureSpec[],
  resumable?: Resumable,
): Promise<Candidates> {
  const sequences = tokenSequences(reference, texts);
  const states = await PooledStates.extract(reference, sequences, specs, resumable);
  const lengths = lengthFeatures(texts, sequences);
  return {
    probe: specs.map((spec) => ({ name: formatSpec(spec), features: () => states.matrix(spec), standardised: true })),
    length: [{ name: 'length', features: () => lengths, standardised: true }],
    ngram: [{ name: 'ngram', features: (training) => ngramFeatures(sequences, training), standardised: false }],
  };
}
