/**
 * The graph of a policy update: per-token loss and its gradients.
 *
 * Loss of a token (Schulman et al. 2017; k3: Schulman 2020), with ρ = π / π_old and q = log π_ref − log π on the sampled token:
 *     −min(ρ A, clip(ρ, 1 − ε, 1 + ε) A) + β (exp q − 1 − q) − c H
 * summed over tokens and divided by a token count that is an input, so gradients of micro-batches add up to the whole batch's.
 * On-policy, the gradient of the k3 term is that of KL(π_ref ‖ π).
 */
import { Differentiable } from '../onnx/differentiable.js';
import type { Dialect, Value } from '../onnx/graph.js';
import { adapterInputs, factorShapes } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import { bindWeights, weightInputs } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { Decoder } from './decoder.js';

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

/** The name under which a graph gives the gradient of a trainable. */
export const gradientName = (trainable: string): string => `gradient.${trainable}`;

/**
 * Inputs: `ids`, `labels` int64 and `mask`, `advantages`, `oldLogProbs`, `referenceLogProbs` float32, all [batch, time], aligned with the
 * label; scalars `tokens` (the divisor), `clip` ε, `kl` β, `entropy` c; bool `onPolicy` takes π itself for π_old; then the trainables.
 * Outputs: `loss`, `klSum` (Σ −q), `entropySum`, `clipped` (tokens beyond the clip), `logProbs` [batch, time], and a gradient a trainable.
 */
export function updateGraph(checkpoint: Checkpoint, trainable: Trainable, dialect: Dialect): Differentiable {
  const g = new Differentiable(dialect);
  const ids = tokenInput(g);
  const rows = (name: string, dtype: 'int64' | 'float32' = 'float32') =>
    g.emitReshape(g.input(name, ['batch', 'time'], dtype), ['rows']);
  const labels = rows('labels', 'int64');
  const [mask, advantages, oldGiven, reference] = ['mask', 'advantages', 'oldLogProbs', 'referenceLogProbs'].map(
    (name) => rows(name),
  ) as [Value, Value, Value, Value];
  const [tokens, clip, klCoefficient, entropyCoefficient] = ['tokens', 'clip', 'kl', 'entropy'].map((name) =>
    g.input(name, []),
  ) as [Value, Value, Value, Value];
  const onPolicy = g.input('onPolicy', [], 'bool');

  const { decoder, trainables } = trainableDecoder(g, checkpoint, trainable);
  const [logProb, entropy] = g.logProbEntropy(decoder.logits(g, decoder.causal(g, ids)), labels);
  // Emitted, not recorded: no gradient flows into π_old.
  const old = g.emitWhere(onPolicy, logProb, oldGiven);

  const one = g.scalar(1);
  const ratio = g.exp(g.sub(logProb, old));
  const clippedRatio = g.clip(ratio, g.emitSub(one, clip), g.emitAdd(one, clip));
  const surrogate = g.min(g.mul(ratio, advantages), g.mul(clippedRatio, advantages));
  const q = g.clip(g.sub(reference, logProb), g.scalar(-LOG_RATIO_LIMIT), g.scalar(LOG_RATIO_LIMIT));
  const k3 = g.sub(g.sub(g.exp(q), one), q);
  const perToken = g.sub(g.sub(g.mul(k3, klCoefficient), surrogate), g.mul(entropy, entropyCoefficient));
  const loss = g.sumAll(g.mul(perToken, g.emitDiv(mask, tokens)));

  const masked = (x: Value) => g.emitSumAll(g.emitMul(x, mask));
  const outside = g.cast(
    g.op('Not', [g.emitBinary('Equal', ratio, clippedRatio, 'bool')], {}, ratio.shape, 'bool'),
    'float32',
  );
  g.output(loss, 'loss');
  g.output(masked(g.emitNeg(q)), 'klSum');
  g.output(masked(entropy), 'entropySum');
  g.output(masked(outside), 'clipped');
  g.output(g.emitReshape(logProb, ['batch', 'time']), 'logProbs');
  const gradients = g.gradients(loss, [...trainables.values()]);
  [...trainables.keys()].forEach((name, i) => g.output(gradients[i]!, gradientName(name)));
  return g;
}

/** The decoder over a checkpoint, with its trainables as inputs. */
function trainableDecoder(
  g: Differentiable,
  checkpoint: Checkpoint,
  trainable: Trainable,
): { decoder: Decoder; trainables: Map<string, Value> } {
  if (trainable === 'weights') {
    const trainables = weightInputs(g, checkpoint.config);
    return { decoder: new Decoder(g, checkpoint.config, (name) => trainables.get(name)!, null, 'time'), trainables };
  }
  const { inputs, values } = adapterInputs(g, checkpoint.config, trainable);
  return { decoder: new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), values, 'time'), trainables: inputs };
}

/**
 * Log-probabilities alone. Inputs `ids`, `labels` [batch, time] and, with a layout, the adapter's factors; outputs `logProbs` and
 * `entropies` [batch, time].
 */
export function logProbGraph(checkpoint: Checkpoint, layout: AdapterLayout | null, dialect: Dialect): Differentiable {
  const g = new Differentiable(dialect);
  const ids = tokenInput(g);
  const labels = g.emitReshape(g.input('labels', ['batch', 'time'], 'int64'), ['rows']);
  const adapter = layout ? adapterInputs(g, checkpoint.config, layout).values : null;
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), adapter, 'time');
  const [logProb, entropy] = g.logProbEntropy(decoder.logits(g, decoder.causal(g, ids)), labels);
  g.output(g.emitReshape(logProb, ['batch', 'time']), 'logProbs');
  g.output(g.emitReshape(entropy, ['batch', 'time']), 'entropies');
  return g;
}
