/** What the micro-world's models are and how they are trained. The shipped checkpoints came from exactly these numbers. */
import type { DecoderConfig } from '../../lm/config.js';
import type { TrainingSettings } from './training.js';

export interface CorpusRecipe {
  readonly seed: number;
  readonly trainingDocuments: number;
  readonly heldOutDocuments: number;
}

export const CORPUS: CorpusRecipe = { seed: 1, trainingDocuments: 600_000, heldOutDocuments: 2000 };

export interface ModelRecipe {
  readonly name: 'generator' | 'solver';
  /** One sentence for the model card. */
  readonly purpose: string;
  readonly config: DecoderConfig;
  readonly training: TrainingSettings;
}

const SHAPE = {
  family: 'llama',
  vocabulary: 280,
  width: 128,
  heads: 4,
  kvHeads: 4,
  headDim: 32,
  feedForward: 352,
  epsilon: 1e-6,
  ropeTheta: 10_000,
  maxPositions: 192,
  tiedHead: true,
  attentionBias: false,
} as const;

const TRAINING = {
  seed: 1,
  batch: 48,
  learningRate: 3e-3,
  warmUpSteps: 200,
  weightDecay: 0.01,
  shortTokens: 24,
  threads: 1,
} as const;

export const MODELS: readonly ModelRecipe[] = [
  {
    name: 'generator',
    purpose:
      'Writes tasks: a short Python function and a call of it. Its frozen copy is the reference model that probes read.',
    config: { ...SHAPE, layers: 3 },
    training: { ...TRAINING, documents: 40_032, taskWeight: 1, shortShare: 0 },
  },
  {
    name: 'solver',
    purpose: 'Predicts the output of a call, right sometimes: its pass rate is what tasks are labelled with.',
    config: { ...SHAPE, layers: 4 },
    training: { ...TRAINING, documents: 864_000, taskWeight: 0.1, shortShare: 0.1 },
  },
];
