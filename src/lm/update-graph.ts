/**
 * The graph of a policy update: per-token loss and its gradients.
 *
 * Loss of a token (Schulman et al. 2017; k3: Schulman 2020), with ρ = π / π_old and q = log π_ref − log π on the sampled token:
 *     −min(ρ A, clip(ρ, 1 − ε, 1 + ε) A) + β (exp q − 1 − q) − c H
 * summed over tokens and divided by a token count that is an input, so gradients of micro-batches add up to the whole batch's.
 * On-policy, the gradient of the k3 term is that of KL(π_ref ‖ π).
 */
import { byChunks } from '../onnx/chunks.js';
import { Differentiable } from '../onnx/differentiable.js';
import type { Dialect, Dim, Shape, Value } from '../onnx/graph.js';
import { adapterInputs, factorShapes } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import { bindWeights, weightInputs } from './checkpoint.js';
import type { BoundWeights, Checkpoint } from './checkpoint.js';
import { weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { Decoder } from './decoder.js';
import type { UpdateMemory } from './memory.js';

/** |log π_ref − log π| beyond which the KL term saturates, before its exponential can overflow. */
const LOG_RATIO_LIMIT = 10;

/** What a graph differentiates: the factors of an adapter over constant weights, or every weight. */
export type Trainable = AdapterLayout | 'weights';

/** Names and shapes of what is trained. */
export function trainableShapes(config: DecoderConfig, trainable: Trainable): Map<string, readonly number[]> {
  return trainable === 'weights' ? weightShapes(config) : factorShapes(config, trainable);
}

/** Token ids [batch, time] as an input, with the graph's symbolic dimensions `batch`, `time` and `rows` = batch · time. */
export function tokenInput(g: Differentiable): Value {
  const ids = g.input('ids', ['batch', 'time'], 'int64');
  const shape = g.op('Shape', [ids], {}, [2], 'int64');
  g.defineDim('batch', g.emitSlice(shape, 0, g.int64([0]), g.int64([1]), 1));
  g.defineDim('time', g.emitSlice(shape, 0, g.int64([1]), g.int64([2]), 1));
  g.defineDim('rows', g.op('Reshape', [g.op('Size', [ids], {}, [], 'int64'), g.int64([1])], {}, [1], 'int64'));
  return ids;
}

/** How the tokens of a batch come into a graph, and which of them are scored. */
export interface TokenRows {
  /** Shape of what is given and returned of each scored token. */
  readonly shape: Shape;
  /** The dimension that counts them. */
  readonly rows: Dim;
  /** The dimension of the longest sequence. */
  readonly positions: Dim;
  /** The stream after all layers [rows, width]. */
  readonly stream: (decoder: Decoder) => Value;
}

export type EmitTokens = (g: Differentiable, config: DecoderConfig) => TokenRows;

/** Right-padded sequences, all tokens scored. */
const paddedTokens: EmitTokens = (g) => {
  const ids = tokenInput(g);
  return { shape: ['batch', 'time'], rows: 'rows', positions: 'time', stream: (decoder) => decoder.causal(g, ids) };
};

/** The name under which a graph gives the gradient of a trainable. */
export const gradientName = (trainable: string): string => `gradient.${trainable}`;

const KEEP_ALL: UpdateMemory = { headRows: null, recompute: false };

/**
 * Inputs: `ids`, `labels` int64 and `mask`, `advantages`, `oldLogProbs`, `referenceLogProbs` float32, all [batch, time], aligned with the
 * label; scalars `tokens` (the divisor), `clip` ε, `kl` β, `entropy` c; bool `onPolicy` takes π itself for π_old; then the trainables.
 * Outputs: `loss`, `klSum` (Σ −q), `entropySum`, `clipped` (tokens beyond the clip), `logProbs` [batch, time], and a gradient a trainable.
 */
export function updateGraph(
  checkpoint: Checkpoint,
  trainable: Trainable,
  dialect: Dialect,
  memory: UpdateMemory = KEEP_ALL,
): Differentiable {
  const g = new Differentiable(dialect);
  emitUpdate(g, checkpoint.config, () => bindWeights(g, checkpoint), trainable, memory);
  return g;
}

/** The same inside a graph that has the weights, which are asked for unless they are what is trained; tokens come as `emitTokens` has it. */
export function emitUpdate(
  g: Differentiable,
  config: DecoderConfig,
  weights: () => BoundWeights,
  trainable: Trainable,
  memory: UpdateMemory,
  emitTokens: EmitTokens = paddedTokens,
): void {
  const scored = emitTokens(g, config);
  const rows = (name: string, dtype: 'int64' | 'float32' = 'float32') =>
    g.emitReshape(g.input(name, scored.shape, dtype), [scored.rows]);
  const labels = rows('labels', 'int64');
  const [mask, advantages, old, reference] = ['mask', 'advantages', 'oldLogProbs', 'referenceLogProbs'].map((name) =>
    rows(name),
  ) as [Value, Value, Value, Value];
  const [tokens, clip, kl, entropy] = ['tokens', 'clip', 'kl', 'entropy'].map((name) => g.input(name, [])) as [
    Value,
    Value,
    Value,
    Value,
  ];
  const settings = { tokens, clip, kl, entropy, onPolicy: g.input('onPolicy', [], 'bool') };

  const { positions } = scored;
  const { decoder, trainables } = trainableDecoder(g, config, weights, trainable, positions, memory.recompute);
  const stream = scored.stream(decoder);
  const lossOf = (h: Differentiable, x: Value, perRow: readonly Value[]) => {
    const [label, ...rest] = perRow as [Value, Value, Value, Value, Value];
    const [logProb, rowEntropy] = h.logProbEntropy(decoder.logits(h, x), label);
    const [rowMask, rowAdvantages, rowOld, rowReference] = rest;
    const row = { mask: rowMask, advantages: rowAdvantages, old: rowOld, reference: rowReference };
    return { sums: policyLoss(h, logProb, rowEntropy, row, settings), results: [logProb] };
  };
  const perRow = [labels, mask, advantages, old, reference];
  const { sums, results } =
    memory.headRows === null ? lossOf(g, stream, perRow) : byChunks(g, stream, perRow, memory.headRows, lossOf);
  ['loss', 'klSum', 'entropySum', 'clipped'].forEach((name, i) => g.output(sums[i]!, name));
  g.output(g.emitReshape(results[0]!, scored.shape), 'logProbs');
  const gradients = g.gradients(sums[0]!, [...trainables.values()]);
  [...trainables.keys()].forEach((name, i) => g.output(gradients[i]!, gradientName(name)));
}

/** What the loss of a row is made of besides the policy, [rows] each. */
interface RowTerms {
  readonly mask: Value;
  readonly advantages: Value;
  readonly old: Value;
  readonly reference: Value;
}

interface LossInputs {
  readonly tokens: Value;
  readonly clip: Value;
  readonly kl: Value;
  readonly entropy: Value;
  readonly onPolicy: Value;
}

/** Sums over rows: the loss, which is differentiable, then Σ −q, Σ H and the number of tokens beyond the clip, all masked. */
function policyLoss(g: Differentiable, logProb: Value, entropy: Value, row: RowTerms, settings: LossInputs): Value[] {
  // Emitted, not recorded: no gradient flows into π_old.
  const old = g.emitWhere(settings.onPolicy, logProb, row.old);
  const one = g.scalar(1);
  const ratio = g.exp(g.sub(logProb, old));
  const clippedRatio = g.clip(ratio, g.emitSub(one, settings.clip), g.emitAdd(one, settings.clip));
  const surrogate = g.min(g.mul(ratio, row.advantages), g.mul(clippedRatio, row.advantages));
  const q = g.clip(g.sub(row.reference, logProb), g.scalar(-LOG_RATIO_LIMIT), g.scalar(LOG_RATIO_LIMIT));
  const k3 = g.sub(g.sub(g.exp(q), one), q);
  const perToken = g.sub(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy));
  const loss = g.sumAll(g.mul(perToken, g.emitDiv(row.mask, settings.tokens)));

  const masked = (x: Value) => g.emitSumAll(g.emitMul(x, row.mask));
  const outside = g.cast(
    g.op('Not', [g.emitBinary('Equal', ratio, clippedRatio, 'bool')], {}, ratio.shape, 'bool'),
    'float32',
  );
  return [loss, masked(g.emitNeg(q)), masked(entropy), masked(outside)];
}

/** The decoder over a checkpoint, with its trainables as inputs. */
function trainableDecoder(
  g: Differentiable,
  config: DecoderConfig,
  weights: () => BoundWeights,
  trainable: Trainable,
  positions: Dim,
  recompute: boolean,
): { decoder: Decoder; trainables: Map<string, Value> } {
  if (trainable === 'weights') {
    const trainables = weightInputs(g, config);
    return { decoder: new Decoder(g, config, (name) => trainables.get(name)!, null, positions, recompute), trainables };
  }
  const { inputs, values } = adapterInputs(g, config, trainable);
  return { decoder: new Decoder(g, config, weights(), values, positions, recompute), trainables: inputs };
}

/**
 * Log-probabilities alone. Inputs `ids`, `labels` [batch, time] and, with a layout, the adapter's factors; outputs `logProbs` and
 * `entropies` [batch, time].
 */
export function logProbGraph(checkpoint: Checkpoint, layout: AdapterLayout | null, dialect: Dialect): Differentiable {
  const g = new Differentiable(dialect);
  emitLogProbs(g, checkpoint.config, bindWeights(g, checkpoint), layout, null);
  return g;
}

/** The same inside a graph that has the weights, its logits by chunks of `headRows`. */
export function emitLogProbs(
  g: Differentiable,
  config: DecoderConfig,
  weights: BoundWeights,
  layout: AdapterLayout | null,
  headRows: number | null,
  emitTokens: EmitTokens = paddedTokens,
): void {
  const tokens = emitTokens(g, config);
  const labels = g.emitReshape(g.input('labels', tokens.shape, 'int64'), [tokens.rows]);
  const adapter = layout ? adapterInputs(g, config, layout).values : null;
  const decoder = new Decoder(g, config, weights, adapter, tokens.positions);
  const stream = tokens.stream(decoder);
  const scored = (h: Differentiable, x: Value, perRow: readonly Value[]) => ({
    sums: [],
    results: h.logProbEntropy(decoder.logits(h, x), perRow[0]!),
  });
  const { results } = headRows === null ? scored(g, stream, [labels]) : byChunks(g, stream, [labels], headRows, scored);
  g.output(g.emitReshape(results[0]!, tokens.shape), 'logProbs');
  g.output(g.emitReshape(results[1]!, tokens.shape), 'entropies');
}
