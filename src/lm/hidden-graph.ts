/** The graph of a reference model's hidden states, pooled over time where they are computed. */
import type { Differentiable } from '../onnx/differentiable.js';
import { adapterInputs } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import type { BoundWeights } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { Decoder } from './decoder.js';
import { tokenInput } from './update-graph.js';

/** The output that holds a layer's pooled states. */
export const hiddenName = (layer: number): string => `hidden.${layer}`;

/**
 * Inputs: `ids` int64 [batch, time] right-padded, `pooling` [batch, poolings, time], the weights of each pooling over time, and with a layout an adapter's factors. Outputs, a
 * layer of `layers` (0: the embeddings; n: the residual stream after layer n): [batch, poolings, width].
 */
export function emitHidden(
  g: Differentiable,
  config: DecoderConfig,
  weights: BoundWeights,
  layers: readonly number[],
  layout: AdapterLayout | null = null,
): void {
  const ids = tokenInput(g);
  const pooling = g.input('pooling', ['batch', 'poolings', 'time']);
  const adapter = layout ? adapterInputs(g, config, layout).values : null;
  const decoder = new Decoder(g, config, weights, adapter, 'time');
  const { width } = config;
  decoder.causal(g, ids, (layer, x) => {
    if (!layers.includes(layer)) return;
    g.output(g.emitMatMul(pooling, g.emitReshape(x, ['batch', 'time', width])), hiddenName(layer));
  });
}
