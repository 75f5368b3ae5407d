/** Features of a task: its text's hidden states in the reference model, at chosen layers and poolings. */
import { RunError } from '../errors.js';
import type { HiddenRequest, Pooling } from '../lm/request-checks.js';
import type { LanguageModel } from '../lm/language-model.js';
import type { Tensor } from '../onnx/session.js';
import type { KeptWork } from '../store/kept-work.js';
import type { Matrix } from './matrix.js';

/** One pooled layer; 0 is the embeddings, n the residual stream after layer n. */
export interface Feature {
  readonly layer: number;
  readonly pooling: Pooling;
}
/** The pooled layers that are laid side by side, in this order. */
export type FeatureSpec = readonly Feature[];

/** What the probe needs of the reference model. */
export type ReferenceModel = Pick<
  LanguageModel,
  'config' | 'tokenizer' | 'hiddenStates' | 'hiddenBatches' | 'hash' | 'folder'
>;

/** Work that can be broken off and gone on with. */
export interface Resumable {
  readonly work: KeptWork;
  /** Called when a part is done; what it throws breaks the work off. */
  readonly onPart: () => void;
}

/** `1.mean+3.last` */
export function formatSpec(spec: FeatureSpec): string {
  return spec.map(({ layer, pooling }) => `${layer}.${pooling}`).join('+');
}

/**
 * Token ids of each text as the reference model reads it, begin-of-sequence first.
 * @throws RunError for one that is longer than its positions: a score of a part would be none of the text
 */
export function tokenSequences({ tokenizer, config }: ReferenceModel, texts: readonly string[]): number[][] {
  return texts.map((text) => {
    const tokens = tokenizer.prompt(text);
    if (tokens.length <= config.maxPositions) return tokens;
    throw new RunError(
      `a task of ${tokens.length} tokens is longer than the reference model reads, ${config.maxPositions}; label again, which leaves such tasks out`,
    );
  });
}

/** Hidden states of sequences for any of the specs that they were extracted for. */
export class PooledStates {
  readonly #rows: number;
  readonly #poolings: readonly Pooling[];
  /** Layer → [rows, poolings, width]. */
  readonly #layers: ReadonlyMap<number, Tensor>;

  private constructor(rows: number, poolings: readonly Pooling[], layers: ReadonlyMap<number, Tensor>) {
    this.#rows = rows;
    this.#poolings = poolings;
    this.#layers = layers;
  }

  /** All layers and poolings of the specs in one pass over the sequences. */
  static async extract(
    model: ReferenceModel,
    sequences: readonly (readonly number[])[],
    specs: readonly FeatureSpec[],
    resumable?: Resumable,
  ): Promise<PooledStates> {
    const features = specs.flat();
    const poolings = [...new Set(features.map(({ pooling }) => pooling))].sort();
    const layers = [...new Set(features.map(({ layer }) => layer))].sort((a, b) => a - b);
    const request = { sequences, layers, poolings };
    const states = resumable ? await statesByParts(model, request, resumable) : await model.hiddenStates(request);
    return new PooledStates(sequences.length, poolings, states);
  }

  /** [rows, width · features]. */
  matrix(spec: FeatureSpec): Matrix {
    const parts = spec.map(({ layer, pooling }) => {
      const states = this.#layers.get(layer);
      const at = this.#poolings.indexOf(pooling);
      if (!states || at < 0) throw new RangeError(`the ${pooling} of layer ${layer} was not extracted`);
      return { states: states.data, at, width: states.shape[2]! };
    });
    const columns = parts.reduce((sum, { width }) => sum + width, 0);
    const data = new Float32Array(this.#rows * columns);
    for (let row = 0; row < this.#rows; row++) {
      let to = row * columns;
      for (const { states, at, width } of parts) {
        const from = (row * this.#poolings.length + at) * width;
        data.set(states.subarray(from, from + width), to);
        to += width;
      }
    }
    return { rows: this.#rows, columns, data };
  }
}

/** The states of one pass after another, each kept once it is there. */
async function statesByParts(
  model: ReferenceModel,
  { sequences, layers, poolings }: HiddenRequest,
  { work, onPart }: Resumable,
): Promise<Map<number, Tensor>> {
  const { width } = model.config;
  const row = poolings.length * width;
  const shape = [sequences.length, poolings.length, width];
  const states = new Map(layers.map((layer) => [layer, { shape, data: new Float32Array(sequences.length * row) }]));
  for (const [index, part] of (await model.hiddenBatches(sequences)).entries()) {
    const bytes = await work.part(`states-${index}`, async () => {
      const found = await model.hiddenStates({ sequences: part.map((i) => sequences[i]!), layers, poolings });
      const data = new Float32Array(layers.length * part.length * row);
      layers.forEach((layer, l) => data.set(found.get(layer)!.data, l * part.length * row));
      return new Uint8Array(data.buffer);
    });
    const data = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / Float32Array.BYTES_PER_ELEMENT);
    layers.forEach((layer, l) =>
      part.forEach((i, r) => {
        const from = (l * part.length + r) * row;
        states.get(layer)!.data.set(data.subarray(from, from + row), i * row);
      }),
    );
    onPart();
  }
  return states;
}
