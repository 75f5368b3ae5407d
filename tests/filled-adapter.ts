import { initialAdapter } from '../src/lm/adapter.js';
import type { Adapter, AdapterLayout } from '../src/lm/adapter.js';
import type { DecoderConfig } from '../src/lm/config.js';
import { seededRandom } from '../src/metrics/random.js';

/** An adapter whose both factors are non-zero: with a B of zeros it would change nothing, and no gradient would reach A. */
export function filledAdapter(config: DecoderConfig, layout: AdapterLayout, seed: number): Adapter {
  const adapter = initialAdapter(config, layout, seed);
  const random = seededRandom(seed + 1);
  for (const [name, { data }] of adapter.factors) {
    if (name.endsWith('lora_B')) data.forEach((_, i) => (data[i] = random() - 0.5));
  }
  return adapter;
}
