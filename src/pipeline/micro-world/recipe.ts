/** What the micro-world's models are and how they are trained. The shipped checkpoints came from exactly these numbers. */
import type { DecoderConfig } from '../../lm/config.js';
import { PRE_TOKENS, WORD_PRE_TOKENS } from './tokenizer-training.js';
import type { TrainingSettings } from './training.js';

export interface CorpusRecipe {
  readonly seed: number;
  /** Programs with a call and its output: code_o and code_i. */
  readonly trainingDocuments: number;
  /** Functions to be found from examples (code_f). */
  readonly trainingFunctions: number;
  /** Held out of each, for the cards. */
  readonly heldOutDocuments: number;
}

export const CORPUS: CorpusRecipe = {
  seed: 1,
  trainingDocuments: 600_000,
  trainingFunctions: 150_000,
  heldOutDocuments: 2000,
};

export const TOKENIZERS = {
  /** The first family's: boilerplate such as `def f(` is one token. */
  boilerplate: { vocabulary: 280, pattern: PRE_TOKENS },
  /** The second family's: whole words, capitals in runs. */
  words: { vocabulary: 400, pattern: WORD_PRE_TOKENS },
} as const;
export type TokenizerName = keyof typeof TOKENIZERS;

export interface ModelRecipe {
  readonly name: 'generator' | 'second-generator' | 'solver';
  /** One sentence for the model card. */
  readonly purpose: string;
  readonly tokenizer: TokenizerName;
  readonly config: DecoderConfig;
  readonly training: TrainingSettings;
}

const SHAPE = {
  family: 'llama',
  vocabulary: TOKENIZERS.boilerplate.vocabulary,
  width: 128,
  heads: 4,
  kvHeads: 4,
  headDim: 32,
  feedForward: 352,
  epsilon: 1e-6,
  ropeTheta: 10_000,
  ropeScaling: null,
  slidingWindow: null,
  maxPositions: 256,
  tiedHead: true,
  attentionBias: false,
} as const;

const TRAINING = { seed: 1, batch: 48, weightDecay: 0.01, shortTokens: 24, threads: 1 } as const;

/** A generator writes tasks of every type; as the reference it reads them as the solver sees them. */
const GENERATOR_TRAINING: TrainingSettings = {
  ...TRAINING,
  taskWeight: 1,
  stages: [
    {
      documents: 72_000,
      mixture: {
        code_o: 0.2,
        code_i: 0.15,
        code_f: 0.2,
        'code_o question': 0.15,
        'code_i question': 0.15,
        'code_f question': 0.15,
      },
      learningRate: 3e-3,
      warmUpSteps: 200,
      shortShare: 0,
    },
  ],
};

export const MODELS: readonly ModelRecipe[] = [
  {
    name: 'generator',
    purpose:
      'Writes tasks: a short Python function and a call of it. Its frozen copy is the reference model that probes read.',
    tokenizer: 'boilerplate',
    config: { ...SHAPE, layers: 3 },
    training: GENERATOR_TRAINING,
  },
  {
    name: 'second-generator',
    purpose:
      'Writes the same tasks in another family: Qwen2’s architecture, grouped queries, an untied head, another tokenizer. A probe of the first family can reward it.',
    tokenizer: 'words',
    config: {
      ...SHAPE,
      family: 'qwen2',
      vocabulary: TOKENIZERS.words.vocabulary,
      width: 96,
      layers: 4,
      heads: 6,
      kvHeads: 2,
      headDim: 16,
      feedForward: 256,
      attentionBias: true,
      tiedHead: false,
    },
    training: GENERATOR_TRAINING,
  },
  {
    name: 'solver',
    purpose:
      'Answers tasks, right sometimes: predicts an output, gives an input, writes a function. Its pass rate is what tasks are labelled with.',
    tokenizer: 'boilerplate',
    config: { ...SHAPE, layers: 4 },
    training: {
      ...TRAINING,
      taskWeight: 0.1,
      stages: [
        {
          documents: 864_000,
          mixture: { 'code_o question': 1 },
          learningRate: 3e-3,
          warmUpSteps: 200,
          shortShare: 0.1,
        },
        {
          documents: 480_000,
          mixture: { 'code_o question': 0.3, 'code_i question': 0.4, 'code_f question': 0.3 },
          learningRate: 2e-3,
          warmUpSteps: 200,
          shortShare: 0,
        },
      ],
    },
  },
];
