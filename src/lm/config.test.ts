/** `config.json`: every family’s fields, old and new ways of writing them, and what is refused. */
import { describe, expect, it } from 'vitest';
import { TINY_GEMMA3, TINY_LLAMA, TINY_QWEN2 } from '../../tests/tiny-checkpoint.js';
import { formatConfig, parseConfig, positionLimit, weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import type { RopeScaling } from './rope.js';
import { refusal } from '../../tests/refusal.js';

const TOKENS = { bos: 1, eos: 2, pad: 0 };
const LLAMA3: RopeScaling = {
  type: 'llama3',
  factor: 4,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalPositions: 16,
};
const LONGROPE: RopeScaling = {
  type: 'longrope',
  shortFactors: [1, 1.5],
  longFactors: [2, 4],
  attentionFactor: 1.25,
  originalPositions: 16,
};

const YARN = {
  type: 'yarn' as const,
  factor: 4,
  betaFast: 32,
  betaSlow: 1,
  truncate: true,
  attentionFactor: 1.5,
  originalPositions: 16,
};

const windowOf = (positions: number, ...layers: boolean[]) => ({ positions, layers, ropeTheta: null });

describe('config.json', () => {
  const base = {
    model_type: 'llama',
    vocab_size: 100,
    hidden_size: 32,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 64,
  };
  const GEMMA = { model_type: 'gemma3_text', num_key_value_heads: 4 };
  const parse = (change: object): DecoderConfig => parseConfig(JSON.stringify({ ...base, ...change }), 'c.json');

  it.each([
    ['llama', TINY_LLAMA],
    ['qwen2', TINY_QWEN2],
    ['llama with scaled positions', { ...TINY_LLAMA, ropeScaling: LLAMA3 }],
    ['llama with stretched positions', { ...TINY_LLAMA, ropeScaling: { type: 'linear', factor: 4 } }],
    ['mistral with a window', { ...TINY_LLAMA, family: 'mistral', slidingWindow: windowOf(8, true, true) }],
    ['mistral without one', { ...TINY_LLAMA, family: 'mistral' }],
    ['qwen2 with one in a layer', { ...TINY_QWEN2, slidingWindow: windowOf(8, false, true) }],
    ['gemma3', TINY_GEMMA3],
    ['gemma3 whose queries are scaled by their width', { ...TINY_GEMMA3, queryScale: undefined }],
    ['phi3 rotated in part', { ...TINY_LLAMA, family: 'phi3', rotatedDim: 2 }],
    ['llama with yarn', { ...TINY_LLAMA, ropeScaling: YARN, maxPositions: 64 }],
    ['qwen3', { ...TINY_LLAMA, family: 'qwen3' }],
    ['phi3 with longrope', { ...TINY_LLAMA, family: 'phi3', ropeScaling: LONGROPE, maxPositions: 16 }],
  ] satisfies [string, DecoderConfig][])('of a %s comes back as it was written', (_, config) => {
    expect(parseConfig(formatConfig(config, TOKENS), 'c.json')).toEqual(config);
    expect(JSON.parse(formatConfig(config, TOKENS))).toMatchObject({
      bos_token_id: 1,
      eos_token_id: 2,
      pad_token_id: 0,
    });
  });

  it('is read as Hugging Face’s defaults have it', () => {
    expect(parse({})).toEqual({
      family: 'llama',
      vocabulary: 100,
      width: 32,
      layers: 2,
      heads: 4,
      kvHeads: 4,
      headDim: 8,
      feedForward: 64,
      epsilon: 1e-6,
      ropeTheta: 10000,
      ropeScaling: null,
      slidingWindow: null,
      maxPositions: 2048,
      tiedHead: false,
      attentionBias: false,
    });
    expect(parse({ rope_parameters: { rope_theta: 500000, rope_type: 'default' } }).ropeTheta).toBe(500000);
  });

  it('has its family’s defaults where it is silent', () => {
    const wide = { num_attention_heads: 32, hidden_size: 256 };
    expect(parse({ model_type: 'qwen3', ...wide })).toMatchObject({ headDim: 128, attentionBias: false, kvHeads: 32 });
    expect(parse({ model_type: 'qwen2', ...wide })).toMatchObject({ kvHeads: 32, maxPositions: 32_768 });
    expect(parse({ model_type: 'mistral', ...wide })).toMatchObject({ kvHeads: 8, slidingWindow: { positions: 4096 } });
    expect(parse({ model_type: 'phi3' })).toMatchObject({ epsilon: 1e-5, maxPositions: 4096, slidingWindow: null });
  });

  it('has as many heads of keys as of queries where their number is null', () => {
    for (const model_type of ['llama', 'mistral', 'qwen2', 'qwen3', 'phi3']) {
      expect(parse({ model_type, num_key_value_heads: null }).kvHeads).toBe(4);
    }
  });

  it('of Gemma 3 has rotations of two kinds, in either way of writing them', () => {
    const read = (change: object) => {
      const { ropeTheta, ropeScaling, slidingWindow, ...rest } = parse({ ...GEMMA, ...change });
      return { theta: ropeTheta, scaling: ropeScaling, local: slidingWindow?.ropeTheta, ...rest };
    };
    expect(read({})).toMatchObject({ theta: 1e6, local: 10_000, scaling: null, headDim: 256, tiedHead: true });
    const linear = { rope_type: 'linear', factor: 8 };
    const expected = { theta: 5e5, local: 500, scaling: { type: 'linear', factor: 8 } };
    expect(read({ rope_theta: 5e5, rope_local_base_freq: 500, rope_scaling: linear })).toMatchObject(expected);
    const newer = { full_attention: { ...linear, rope_theta: 5e5 }, sliding_attention: { rope_theta: 500 } };
    expect(read({ rope_theta: 7, rope_parameters: newer })).toMatchObject(expected);
    // The older name of the kind is passed over.
    expect(read({ rope_scaling: { type: 'linear', factor: 8 } }).scaling).toBeNull();
    // Every sixth layer sees all, or every nth.
    const layers = (change: object) => parse({ ...GEMMA, num_hidden_layers: 7, ...change }).slidingWindow?.layers;
    expect(layers({})).toEqual([true, true, true, true, true, false, true]);
    expect(layers({ sliding_window_pattern: 2 })).toEqual([true, false, true, false, true, false, true]);
  });

  it('has biases where the family says, whatever attention_bias does', () => {
    const biased = (model_type: string) =>
      [true, false, null, undefined].map(
        (attention_bias) => parse({ model_type, num_key_value_heads: 4, attention_bias }).attentionBias,
      );
    expect(biased('qwen2')).toEqual([true, true, true, true]);
    expect(biased('qwen3')).toEqual([true, false, false, false]);
    expect(biased('llama')).toEqual([true, false, false, false]);
    expect(biased('mistral')).toEqual([false, false, false, false]);
    expect(parse({ model_type: 'qwen2', num_key_value_heads: 4, mlp_bias: true })).toBeTruthy();
    expect(parse({ hidden_act: 'swish' })).toEqual(parse({}));
  });

  it('has a sliding window where the family, the switch and the layers have one, and does not end there', () => {
    const ends = (change: object): object => {
      const given = { max_position_embeddings: 4096, sliding_window: 512, num_key_value_heads: 4 };
      const { maxPositions, slidingWindow } = parse({ ...given, ...change });
      return { maxPositions, slidingWindow };
    };
    const windowed = { maxPositions: 4096, slidingWindow: windowOf(512, true, true) };
    const later = { maxPositions: 4096, slidingWindow: windowOf(512, false, true) };
    const whole = { maxPositions: 4096, slidingWindow: null };
    expect(ends({ model_type: 'mistral' })).toEqual(windowed);
    expect(ends({ model_type: 'phi3' })).toEqual(windowed);
    const switched = { model_type: 'qwen2', use_sliding_window: true };
    expect(ends({ ...switched, max_window_layers: 1 })).toEqual(later);
    expect(ends({ ...switched, layer_types: ['full_attention', 'sliding_attention'] })).toEqual(later);
    // No layer comes after the 28th.
    expect(ends(switched)).toEqual(whole);
    expect(ends({ ...switched, max_window_layers: 0, layer_types: ['full_attention', 'full_attention'] })).toEqual(
      whole,
    );
    const unsaid = { max_position_embeddings: 8192, sliding_window: undefined };
    const unsaidWindow = { maxPositions: 8192, slidingWindow: windowOf(4096, true, true) };
    expect(ends({ model_type: 'mistral', ...unsaid })).toEqual(unsaidWindow);
    expect(ends({ ...switched, max_window_layers: 0, ...unsaid })).toEqual(unsaidWindow);
    expect(ends({ model_type: 'qwen2', use_sliding_window: false })).toEqual(whole);
    expect(ends({ model_type: 'llama' })).toEqual(whole);
    expect(ends({ model_type: 'mistral', sliding_window: null })).toEqual(whole);
    expect(ends({ model_type: 'mistral', sliding_window: 8192 })).toEqual({
      maxPositions: 4096,
      slidingWindow: windowOf(8192, true, true),
    });
  });

  it('is read in its older and newer ways of writing scaled positions', () => {
    const llama3 = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 16 };
    const expected = { ...LLAMA3, factor: 8 };
    expect(parse({ rope_scaling: { rope_type: 'llama3', ...llama3 } }).ropeScaling).toEqual(expected);
    expect(parse({ rope_parameters: { rope_type: 'llama3', ...llama3, rope_theta: 5 } })).toMatchObject({
      ropeScaling: expected,
      ropeTheta: 5,
    });
    const longrope = { type: 'su', short_factor: [1, 2, 3, 4], long_factor: [5, 6, 7, 8] };
    const phi3 = parse({
      model_type: 'phi3',
      rope_scaling: longrope,
      max_position_embeddings: 256,
      original_max_position_embeddings: 16,
    });
    // √(1 + ln(256 / 16) / ln 16) = √2
    expect(phi3.ropeScaling).toMatchObject({ type: 'longrope', shortFactors: [1, 2, 3, 4], originalPositions: 16 });
    expect(phi3.ropeScaling).toHaveProperty('attentionFactor', Math.SQRT2);
    expect(phi3.maxPositions).toBe(16);
  });

  it('prefers rope_scaling, a theta within it, and the original positions at the top, as transformers does', () => {
    const scaled = (change: object) => parse({ max_position_embeddings: 64, ...change });
    const linear = { rope_type: 'linear', factor: 2 };
    expect(scaled({ rope_scaling: linear, rope_parameters: { rope_type: 'linear', factor: 4 } })).toEqual(
      scaled({ rope_scaling: linear }),
    );
    expect(scaled({ rope_scaling: {}, rope_parameters: { rope_theta: 5 } }).ropeTheta).toBe(5);
    expect(scaled({ rope_theta: 9, rope_scaling: { type: 'default', rope_theta: 7 } })).toMatchObject({
      ropeTheta: 7,
      ropeScaling: null,
    });
    const longrope = { type: 'longrope', short_factor: [1, 1, 1, 1], long_factor: [1, 1, 1, 1] };
    const original = (change: object, within: object = {}) =>
      scaled({ rope_scaling: { ...longrope, ...within }, ...change }).ropeScaling as { originalPositions: number };
    const within = { original_max_position_embeddings: 16 };
    expect(original({}, within).originalPositions).toBe(16);
    expect(original({ original_max_position_embeddings: 32 }, within).originalPositions).toBe(32);
    expect(original({}).originalPositions).toBe(64);
    expect(original({ model_type: 'phi3' }, within).originalPositions).toBe(4096);
    // √(1 + ln 8 / ln 16)
    expect(original({}, { ...within, factor: 8 })).toMatchObject({
      attentionFactor: Math.sqrt(1 + Math.log(8) / Math.log(16)),
    });
  });

  it('reaches as far as yarn stretches it; dynamic changes nothing up to the positions', () => {
    const yarn = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32_768 };
    expect(parse({ rope_scaling: yarn, max_position_embeddings: 32_768 }).maxPositions).toBe(131_072);
    expect(parse({ rope_scaling: { ...yarn, factor: 1e12 } }).maxPositions).toBe(2 ** 27);
    expect(parse({ rope_scaling: { type: 'dynamic', factor: 2 } })).toEqual(parse({}));
  });

  it('says where sequences end, and why', () => {
    const said = (change: object): string => positionLimit(parse({ num_key_value_heads: 4, ...change }));
    expect(said({})).toBe("the model's 2048 positions");
    const rope_scaling = { type: 'longrope', short_factor: [1, 1, 1, 1], long_factor: [1, 1, 1, 1] };
    expect(said({ model_type: 'phi3', rope_scaling, original_max_position_embeddings: 32 })).toBe(
      "the 32 positions of the model's short RoPE factors; the long ones are not supported",
    );
  });

  it.each<[object, string]>([
    [
      { model_type: 'mamba' },
      "c.json: model_type 'mamba' is not supported; supported are llama, mistral, qwen2, qwen3, phi3, gemma3_text",
    ],
    [{ vocab_size: 'many' }, 'c.json: vocab_size: '],
    [{ num_hidden_layers: 0 }, 'c.json: num_hidden_layers: '],
    [{ num_hidden_layers: 1e12 }, 'c.json: num_hidden_layers: is more than 10000, which no decoder has'],
    [{ num_hidden_layers: 2.5 }, 'c.json: num_hidden_layers: is no whole number'],
    [{ vocab_size: 2e8 }, 'c.json: vocab_size: is more than 16777216, which no decoder has'],
    [{ head_dim: 1e15 }, 'c.json: head_dim: is more than 65536, which no decoder has'],
    [{ max_position_embeddings: 1e300 }, 'c.json: max_position_embeddings: is '],
    [{ hidden_act: 'gelu' }, "c.json: hidden_act 'gelu' is not supported; only silu is"],
    [{ rope_scaling: { type: 'yarn' } }, 'c.json: rope_scaling.factor: missing'],
    [{ rope_scaling: { type: 'dynamic' } }, 'c.json: rope_scaling.factor: missing'],
    [
      { rope_scaling: { type: 'proportional' } },
      'c.json: rope_scaling "proportional" is not supported; supported are linear, dynamic, llama3, longrope and yarn',
    ],
    [{ rope_scaling: { type: 'linear', factor: 2, rope_theta: 'high' } }, 'c.json: rope_theta is no positive number'],
    [{ rope_scaling: 4 }, 'c.json: rope_scaling: '],
    [{ rope_parameters: { rope_type: 'llama3' } }, 'c.json: rope_scaling.factor: '],
    [
      { rope_scaling: { type: 'su', short_factor: [1], long_factor: [1] }, original_max_position_embeddings: 9 },
      'c.json: rope_scaling: short_factor and long_factor must have 4 numbers',
    ],
    [{ partial_rotary_factor: 0.75 }, 'c.json: partial_rotary_factor is not supported in this family'],
    [{ ...GEMMA, final_logit_softcapping: 30 }, 'c.json: attn_logit_softcapping and final_logit_softcapping are not'],
    [{ ...GEMMA, use_bidirectional_attention: true }, 'c.json: use_bidirectional_attention is true'],
    [
      { ...GEMMA, hidden_activation: 'silu' },
      "c.json: hidden_activation 'silu' is not supported; only gelu_pytorch_tanh",
    ],
    [{ ...GEMMA, sliding_window: null }, 'c.json: sliding_window is null, but layer_types names layers that have one'],
    [{ ...GEMMA, layer_types: ['full_attention'] }, 'c.json: layer_types names 1 layers, num_hidden_layers says 2'],
    [{ ...GEMMA, layer_types: ['full_attention', 'chunked'] }, 'c.json: layer_types.1: '],
    [
      { ...GEMMA, rope_parameters: { sliding_attention: { rope_type: 'linear', factor: 2 } } },
      'c.json: rope_parameters.sliding_attention: scaled rotations',
    ],
    [
      { model_type: 'phi3', partial_rotary_factor: 0.4 },
      'c.json: partial_rotary_factor 0.4 does not give an even part of a head of 8',
    ],
    [{ quantization_config: { quant_method: 'awq' } }, 'c.json: quantization_config: quantised weights are not'],
    [{ is_causal: false }, 'c.json: is_causal is false: a model that sees later tokens cannot write'],
    [{ transformers_weights: 'a.safetensors' }, 'c.json: transformers_weights is not supported'],
    [{ mlp_bias: true }, 'c.json: mlp_bias is not supported'],
    [{ num_key_value_heads: 3 }, 'c.json: num_attention_heads must be a multiple of num_key_value_heads'],
    [{ hidden_size: 36 }, 'c.json: the head dimension must be an even integer'],
  ])('%j is refused', (change, message) => {
    expect(refusal(() => parse(change))).toContain(`UserError: ${message}`);
  });

  it('of another family is refused by its name, whatever keys it lacks', () => {
    const supported = 'supported are llama, mistral, qwen2, qwen3, phi3, gemma3_text';
    expect(refusal(() => parseConfig('{"model_type": "mamba"}', 'c.json'))).toContain(
      `UserError: c.json: model_type 'mamba' is not supported; ${supported}`,
    );
    expect(refusal(() => parseConfig('{"model_type": "llama"}', 'c.json'))).toContain(
      'UserError: c.json: vocab_size: ',
    );
    expect(refusal(() => parseConfig('{}', 'c.json'))).toContain('UserError: c.json: model_type: ');
  });

  it('that is not JSON, or not an object, is refused', () => {
    expect(refusal(() => parseConfig('{"model_type":', 'c.json'))).toContain('UserError: c.json is not valid JSON');
    expect(refusal(() => parseConfig('[1]', 'c.json'))).toContain('UserError: c.json: ');
  });

  it('gives a phi3 two matrices for five, and a qwen3 norms of its heads', () => {
    const of = (config: DecoderConfig): [string, number[]][] =>
      [...weightShapes({ ...config, layers: 1 })].map(([name, shape]) => [name.split('.')[4] ?? name, shape]);
    const phi3 = of({ ...TINY_LLAMA, family: 'phi3' });
    // 4 heads and 2 · 2 key–value heads of 4; gate and up of 24 each.
    expect(phi3.filter(([name]) => name.includes('_')).slice(1)).toEqual([
      ['qkv_proj', [32, 16]],
      ['o_proj', [16, 16]],
      ['gate_up_proj', [48, 16]],
      ['down_proj', [16, 24]],
    ]);
    expect(of({ ...TINY_LLAMA, family: 'qwen3' }).filter(([name]) => name.endsWith('norm'))).toEqual([
      ['q_norm', [4]],
      ['k_norm', [4]],
    ]);
  });

  it('gives a llama with attention_bias four biases a layer, a qwen2 three', () => {
    const biases = (config: DecoderConfig): string[] =>
      [...weightShapes({ ...config, layers: 1, attentionBias: true }).keys()].filter((name) => name.endsWith('.bias'));
    expect(biases(TINY_LLAMA).map((name) => name.split('.')[4])).toEqual(['q_proj', 'k_proj', 'v_proj', 'o_proj']);
    expect(biases(TINY_QWEN2).map((name) => name.split('.')[4])).toEqual(['q_proj', 'k_proj', 'v_proj']);
  });
});
