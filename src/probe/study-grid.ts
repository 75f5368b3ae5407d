/** What a probe study compares: features over layers and poolings, and how many labels are learnt from. */
import { largest } from '../metrics/extremes.js';
import { formatSpec } from './features.js';
import type { FeatureSpec } from './features.js';

/** Of a model with more layers, this many steps from the embeddings to the last one are studied. */
const MOST_STEPS = 8;

/** The layers that are studied unless they are named: all of a small model, else nine evenly spaced, embeddings and last layer among them. */
export function studyLayers(layers: number): number[] {
  const steps = Math.min(layers, MOST_STEPS);
  return Array.from({ length: steps + 1 }, (_, i) => Math.round((i * layers) / steps));
}

/**
 * Of each layer its mean, its last token and both; the mean of each earlier layer beside the last token of the last one, which joins what
 * the text holds with what the model makes of it; and `further` specs. Each once.
 */
export function studyFeatures(layers: readonly number[], further: readonly FeatureSpec[]): FeatureSpec[] {
  const mean = (layer: number) => ({ layer, pooling: 'mean' }) as const;
  const last = (layer: number) => ({ layer, pooling: 'last' }) as const;
  const final = largest(layers);
  const specs: FeatureSpec[] = [
    ...layers.flatMap((layer) => [[mean(layer)], [last(layer)], [mean(layer), last(layer)]]),
    ...layers.filter((layer) => layer < final).map((layer) => [mean(layer), last(final)]),
    ...further,
  ];
  return [...new Map(specs.map((spec) => [formatSpec(spec), spec])).values()];
}

/** Unless they are named. */
const COUNTS = [250, 500, 1000, 2000, 4000, 8000];
/** Tasks of the rarer class that a number of labels must hold. */
const FEWEST = 15;

/**
 * The numbers of labels that are learnt from unless they are named: those below what is available, and all of it.
 * @param rarer share of the rarer of "in band" and "out of band"
 */
export function studyCounts(available: number, rarer: number): number[] {
  return [...COUNTS.filter((count) => count < available && count * rarer >= FEWEST), available];
}
