/** The graph of a reference model's hidden states, pooled over time where they are computed. */
import { Differentiable } from '../onnx/differentiable.js';
import type { Dialect } from '../onnx/graph.js';
import { bindWeights } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { Decoder } from './decoder.js';
import { tokenInput } from './update-graph.js';

/** The output that holds a layer's pooled states. */
export const hiddenName = (layer: number): string => `hidden.${layer}`;

/**
 * Inputs: `ids` int64 [batch, time] right-padded, `pooling` [batch, poolings, time], the weights of each pooling over time. Outputs, a
 * layer of `layers` (0: the embeddings; n: the residual stream after layer n): [batch, poolings, width].
 */
export function hiddenGraph(checkpoint: Checkpoint, layers: readonly number[], dialect: Dialect): Differentiable {
  const g = new Differentiable(dialect);
  const ids = tokenInput(g);
  const pooling = g.input('pooling', ['batch', 'poolings', 'time']);
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), null, 'time');
  const { width } = checkpoint.config;
  decoder.causal(g, ids, (layer, x) => {
    if (!layers.includes(layer)) return;
    g.output(g.emitMatMul(pooling, g.emitReshape(x, ['batch', 'time', width])), hiddenName(layer));
  });
  return g;
}
