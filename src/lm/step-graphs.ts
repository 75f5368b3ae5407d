/**
 * A rollout token by token, for providers that have no Loop of their own: a graph that reads the prompts and draws the first token, and one
 * that takes a token and draws the next. Keys and values go from run to run and never leave the device; only the tokens do.
 * Sampling is the Loop rollout's own, so the same uniforms give the same tokens.
 */
import type { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import { adapterInputs } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import type { BoundWeights } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { Decoder } from './decoder.js';
import type { Attention } from './decoder.js';
import { perSample, sampleTokens, stepAttention, times } from './rollout-graph.js';
import { modelWindow } from './sliding-window.js';

const HANDED_ON = 'device.';
/** The output that is handed on to a step's input. */
const handedOn = (input: string): string => `${HANDED_ON}${input}`;
/** The step's input that an output is handed on to; null for what the host reads. */
export const takenAs = (output: string): string | null =>
  output.startsWith(HANDED_ON) ? output.slice(HANDED_ON.length) : null;

/** Names of each layer's keys and values, of the prompts or of what the samples wrote. */
function cacheNames(layers: number, of: 'prompt' | 'written'): string[] {
  return Array.from({ length: layers }, (_, layer) => [`${of}.k.${layer}`, `${of}.v.${layer}`]).flat();
}

/**
 * Inputs: `prompts` int64 [prompts, promptTime] right-padded; `last` [prompts, 1, promptTime], 1 at each prompt's last token, else 0;
 * `promptBias` [prompts, 1, 1, promptTime], MASKED at padding, else 0; `uniforms` [samples]; scalar `temperature`; the adapter's factors.
 * Outputs: `drawn`, the token, and `logProb` [samples]; on the device, as `handedOn` names them, the prompts' keys and values, a written position
 * of zeros that the steps' bias hides (the first step has something to append to), and what else the steps take.
 */
export function emitPrompts(
  g: Differentiable,
  config: DecoderConfig,
  weights: BoundWeights,
  layout: AdapterLayout | null,
  adapters: number | null = null,
): void {
  const prompts = g.input('prompts', ['prompts', 'promptTime'], 'int64');
  const last = g.input('last', ['prompts', 1, 'promptTime']);
  const promptBias = g.input('promptBias', ['prompts', 1, 1, 'promptTime']);
  const uniforms = g.input('uniforms', ['samples']);
  const temperature = g.input('temperature', []);
  const [rows, time] = sizesOf(g, prompts, ['prompts', 'promptTime']) as [Value, Value];
  g.defineDim('rows', g.emitMul(rows, time));
  sizesOf(g, uniforms, ['samples']);
  g.defineDim('perPrompt', g.emitDiv(g.dim('samples'), rows));
  const adapter = layout ? adapterInputs(g, config, layout, adapters) : null;
  const decoder = new Decoder(g, config, weights, adapter?.values ?? null, 'promptTime');

  const cache: Value[] = [];
  const x = decoder.causal(g, prompts, undefined, (k, v) => cache.push(k, v));
  const stream = g.emitReshape(x, ['prompts', 'promptTime', config.width]);
  const ends = g.emitReshape(g.emitMatMul(last, stream), ['prompts', config.width]);
  const logits = perSample(g, decoder.logits(g, ends), config.vocabulary);
  outputDrawn(g, sampleTokens(g, logits, uniforms, temperature, config.vocabulary));

  cacheNames(config.layers, 'prompt').forEach((name, i) => g.deviceOutput(cache[i]!, handedOn(name)));
  for (const name of cacheNames(config.layers, 'written')) {
    g.deviceOutput(g.zeros(['samples', config.kvHeads, 1, config.headDim]), handedOn(name));
  }
  g.deviceOutput(promptBias, handedOn('promptBias'));
  g.deviceOutput(temperature, handedOn('temperature'));
  for (const [name, factor] of adapter?.inputs ?? []) g.deviceOutput(factor, handedOn(name));
}

/**
 * Inputs: `token` int64 [samples], the last one drawn; `position` int64 [samples, 1], where it stands; `writtenBias` [written], MASKED at
 * the first position, else 0; `uniforms` [samples]; where the model has a window, `windowWrittenBias` and `windowPromptBias`, like the other
 * two and MASKED before the window too; and what the prompt graph or the step before handed on. Outputs: `drawn` and `logProb` [samples]; on
 * the device the written keys and values, one position longer.
 */
export function emitStep(
  g: Differentiable,
  config: DecoderConfig,
  weights: BoundWeights,
  layout: AdapterLayout | null,
  adapters: number | null = null,
): void {
  const token = g.input('token', ['samples'], 'int64');
  const position = g.input('position', ['samples', 1], 'int64');
  const writtenBias = g.input('writtenBias', ['written']);
  const uniforms = g.input('uniforms', ['samples']);
  const promptBias = g.input('promptBias', ['prompts', 1, 1, 'promptTime']);
  const temperature = g.input('temperature', []);
  const windowed = modelWindow(config) === null ? null : windowBiases(g);
  const [prompt, past] = [cacheInputs(g, config, 'prompt'), cacheInputs(g, config, 'written')];
  defineStepDims(g, token, writtenBias, promptBias, config.heads / config.kvHeads);
  const adapter = layout ? adapterInputs(g, config, layout, adapters).values : null;
  const decoder = new Decoder(g, config, weights, adapter, 'positions');

  const grown: Value[] = [];
  const attention: Attention = (layer, q, k, v) => {
    const at = (cache: readonly Value[]) => ({ k: cache[2 * layer]!, v: cache[2 * layer + 1]! });
    const before = at(past);
    const keys = g.emitConcat([before.k, k], 2, 'written');
    const values = g.emitConcat([before.v, v], 2, 'written');
    grown.push(keys, values);
    const seen = decoder.windowOf(layer) === null ? { promptBias, writtenBias } : windowed!;
    const own = { k: keys, v: values, bias: seen.writtenBias };
    return stepAttention(g, q, at(prompt), seen.promptBias, own, decoder.group);
  };
  const h = decoder.layers(g, decoder.embed(g, token), ['samples', 1], decoder.rotary(position), attention);
  outputDrawn(g, sampleTokens(g, decoder.logits(g, h), uniforms, temperature, config.vocabulary));
  cacheNames(config.layers, 'written').forEach((name, i) => g.deviceOutput(grown[i]!, handedOn(name)));
}

function windowBiases(g: Differentiable): { promptBias: Value; writtenBias: Value } {
  return {
    promptBias: g.input('windowPromptBias', ['prompts', 1, 1, 'promptTime']),
    writtenBias: g.input('windowWrittenBias', ['written']),
  };
}

function outputDrawn(g: Differentiable, { token, logProb }: { token: Value; logProb: Value }): void {
  g.output(token, 'drawn');
  g.output(logProb, 'logProb');
}

function cacheInputs(
  g: Differentiable,
  { layers, kvHeads, headDim }: DecoderConfig,
  of: 'prompt' | 'written',
): Value[] {
  const [rows, time] = of === 'prompt' ? ['prompts', 'promptTime'] : ['samples', 'past'];
  return cacheNames(layers, of).map((name) => g.input(name, [rows, kvHeads, time, headDim]));
}

/** Define the leading dimensions of a value by its run-time sizes. */
function sizesOf(g: Differentiable, value: Value, names: readonly string[]): Value[] {
  const shape = g.op('Shape', [value], {}, [value.shape.length], 'int64');
  return names.map((name, i) => {
    const size = g.emitSlice(shape, 0, g.int64([i]), g.int64([i + 1]), 1);
    g.defineDim(name, size);
    return size;
  });
}

function defineStepDims(g: Differentiable, token: Value, writtenBias: Value, promptBias: Value, group: number): void {
  const [samples] = sizesOf(g, token, ['samples']) as [Value];
  const [written] = sizesOf(g, writtenBias, ['written']) as [Value];
  const [prompts] = sizesOf(g, promptBias, ['prompts']) as [Value];
  const shape = g.op('Shape', [promptBias], {}, [4], 'int64');
  const promptTime = g.emitSlice(shape, 0, g.int64([3]), g.int64([4]), 1);
  g.defineDim('promptTime', promptTime);
  g.defineDim('positions', g.emitAdd(promptTime, written));
  g.defineDim('perPrompt', g.emitDiv(samples, prompts));
  if (group > 1) g.defineDim(times(group, 'perPrompt'), g.emitMul(g.dim('perPrompt'), g.int64([group])));
}
