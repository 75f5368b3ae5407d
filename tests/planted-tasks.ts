/** A stand-in for a reference model, and labelled tasks whose difficulty it knows of, for tests of probes. */
import type { ReferenceModel } from '../src/probe/features.js';
import type { LabelledTask } from '../src/probe/labels.js';
import { seededRandom } from '../src/metrics/random.js';

/** Attempts at each of `plantedTasks`. */
export const PLANTED_ATTEMPTS = 4;
export const PLANTED_BAND = { min: 1, max: 2 };

const WIDTH = 3;

/**
 * A stand-in for a language model: a text is words of one letter, a token a letter, and a state's first number the share of `a` among
 * tokens at layer 1 and noise elsewhere.
 */
export const standInReference: ReferenceModel = {
  folder: '/models/stand-in',
  hash: 'f'.repeat(64),
  config: { width: WIDTH, maxPositions: 41 } as ReferenceModel['config'],
  tokenizer: {
    prompt: (text: string) => [0, ...[...text].map((letter) => letter.charCodeAt(0) - 96)],
  } as ReferenceModel['tokenizer'],
  hiddenBatches: async (sequences) => [sequences.map((_, i) => i)],
  hiddenStates: async ({ sequences, layers, poolings }) =>
    new Map(
      layers.map((layer) => {
        const data = sequences.flatMap((sequence) => {
          const share = sequence.filter((token) => token === 1).length / sequence.length;
          return poolings.flatMap((pooling) => {
            const random = seededRandom(`${layer} ${pooling} ${sequence.join()}`);
            return [layer === 1 && pooling === 'mean' ? share : random(), random(), random()];
          });
        });
        return [layer, { shape: [sequences.length, poolings.length, WIDTH], data: Float32Array.from(data) }];
      }),
    ),
};

/** Texts of equal length, all different; passes ~ Binomial(4, p), p falling as the share of `a` grows. */
export function plantedTasks(count: number): LabelledTask[] {
  const random = seededRandom('planted tasks');
  const texts = new Set<string>();
  return Array.from({ length: count }, (_, i) => {
    const share = 0.9 * random();
    const letter = (): string => (random() < share ? 'a' : 'bcdefgh'[Math.floor(random() * 7)]!);
    let text = '';
    do text = Array.from({ length: 30 }, letter).join('');
    while (texts.has(text));
    texts.add(text);
    const p = 1 / (1 + Math.exp(8 * (share - 0.4)));
    return {
      id: `task ${i}`,
      text,
      passes: Array.from({ length: PLANTED_ATTEMPTS }, random).filter((u) => u < p).length,
    };
  });
}
