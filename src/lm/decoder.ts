/**
 * The decoder, defined once: RMSNorm, rotary positions, grouped-query attention, gated linear units, with LoRA branches on any linear module.
 * The graphs for hidden states, rollouts and updates are all built from it. Touvron et al. 2023; Gemma Team 2025; LoRA: Hu et al. 2021.
 */
import type { Differentiable, Rotary } from '../onnx/differentiable.js';
import type { Dim, Value } from '../onnx/graph.js';
import { hasBias, weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import { familyOf } from './families.js';
import type { Family } from './families.js';
import { rotaryTables } from './rope.js';
import { windowOf } from './sliding-window.js';

/**
 * LoRA factors as graph values: ΔW = scale · B A, with A [rank, in] and B [out, rank], by module name (`model.layers.0.…q_proj`); of
 * several adapters A [adapters, rank, in] and B [adapters, out, rank], each for an equal share of the rows, in order, and without gradients.
 */
export interface AdapterValues {
  /** How many adapters the factors hold; null: one, without an axis for it. */
  readonly adapters: number | null;
  readonly factors: ReadonlyMap<string, { readonly A: Value; readonly B: Value; readonly scale: number }>;
}

/** Attention of one layer: q [batch, kvHeads, group · time, headDim], k and v [batch, kvHeads, time, headDim] → like q. */
export type Attention = (layer: number, q: Value, k: Value, v: Value) => Value;

/** By layer: what rotates its queries and keys. */
export type LayerRotary = (layer: number) => Rotary;

type Tables = Omit<Rotary, 'positions'>;

export class Decoder {
  readonly config: DecoderConfig;
  readonly group: number;
  readonly #family: Family;
  readonly #weight: (name: string) => Value;
  readonly #adapter: AdapterValues | null;
  readonly #tables: Tables;
  /** Of layers with a window, where they have others. */
  readonly #windowTables: Tables | null;
  readonly #recompute: boolean;

  /**
   * `graph`, not the body of a Loop, computes the rotary tables of `positions`, the length of its longest sequence. With `recompute`,
   * layers keep their input alone for the backward pass.
   */
  constructor(
    graph: Differentiable,
    config: DecoderConfig,
    weight: (name: string) => Value,
    adapter: AdapterValues | null,
    positions: Dim,
    recompute = false,
  ) {
    this.#recompute = recompute;
    this.config = config;
    this.group = config.heads / config.kvHeads;
    this.#family = familyOf(config);
    this.#weight = this.#family.normShift === 0 ? weight : withShiftedNorms(graph, config, weight);
    this.#adapter = adapter;
    const { headDim, rotatedDim = headDim, maxPositions, ropeTheta: theta, ropeScaling: scaling } = config;
    const shared = { headDim: rotatedDim, maxPositions, length: positions };
    this.#tables = rotaryTables(graph, { ...shared, name: 'rotary', theta, scaling });
    const local = config.slidingWindow?.ropeTheta ?? null;
    this.#windowTables =
      local === null ? null : rotaryTables(graph, { ...shared, name: 'rotary_window', theta: local, scaling: null });
  }

  /**
   * Positions [batch, time] → what the layers need to rotate queries and keys. `of` makes of a table [positions, half a head's rotated part]
   * another that the positions then count in.
   */
  rotary(positions: Value, of: (table: Value) => Value = (table) => table): LayerRotary {
    const rotary = ({ cos, sin, negativeSin }: Tables): Rotary => ({
      cos: of(cos),
      sin: of(sin),
      negativeSin: of(negativeSin),
      positions,
    });
    const all = rotary(this.#tables);
    const windowed = this.#windowTables === null ? all : rotary(this.#windowTables);
    return (layer) => (this.config.slidingWindow?.layers[layer] === true ? windowed : all);
  }

  /** Latest positions that a layer's tokens attend to; null: all before them. */
  windowOf(layer: number): number | null {
    return windowOf(this.config, layer);
  }

  /** Token ids [rows] → residual stream [rows, width]. */
  embed(g: Differentiable, ids: Value): Value {
    const x = g.embed(this.#weight('model.embed_tokens.weight'), ids);
    return this.#family.scaledEmbeddings ? g.mul(x, g.scalar(Math.sqrt(this.config.width))) : x;
  }

  /** All layers on x [rows, width], rows = batch · time; `onLayer` sees the stream before layer 0 and after each layer. */
  layers(
    g: Differentiable,
    x: Value,
    [batch, time]: readonly [Dim, Dim],
    rotary: LayerRotary,
    attention: Attention,
    onLayer?: (layer: number, x: Value) => void,
  ): Value {
    onLayer?.(0, x);
    for (let layer = 0; layer < this.config.layers; layer++) {
      const run = (stream: Value) => this.#layer(g, layer, stream, batch, time, rotary(layer), attention);
      x = this.#recompute ? g.recomputed(x, run) : run(x);
      onLayer?.(layer + 1, x);
    }
    return x;
  }

  /** A full causal pass over right-padded ids [batch, time]: padding lies in every token's future, so no mask is needed. */
  causal(
    g: Differentiable,
    ids: Value,
    onLayer?: (layer: number, x: Value) => void,
    onKeyValue?: (k: Value, v: Value) => void,
  ): Value {
    const [batch, time] = ids.shape as [Dim, Dim];
    const range = g.op(
      'Range',
      [g.int64Scalar(0), g.op('Squeeze', [g.dim(time)], {}, [], 'int64'), g.int64Scalar(1)],
      {},
      [time],
      'int64',
    );
    const positions = g.emitExpand(range, [batch, time]);
    const bias = biases((window) => g.causalBias(time, window));
    const x = this.embed(g, g.emitReshape(ids, ['rows']));
    const attention: Attention = (layer, q, k, v) => {
      onKeyValue?.(k, v);
      return g.causalAttention(q, k, v, bias(this.windowOf(layer)), this.group, time);
    };
    return this.layers(g, x, [batch, time], this.rotary(positions), attention, onLayer);
  }

  /** Residual stream [rows, width] → logits [rows, vocabulary]. */
  logits(g: Differentiable, x: Value): Value {
    const normalised = g.rmsNorm(x, this.#weight('model.norm.weight'), this.config.epsilon);
    return g.linear(normalised, this.#weight(this.config.tiedHead ? 'model.embed_tokens.weight' : 'lm_head.weight'));
  }

  #layer(
    g: Differentiable,
    layer: number,
    x: Value,
    batch: Dim,
    time: Dim,
    rotary: Rotary,
    attention: Attention,
  ): Value {
    const c = this.config;
    const prefix = `model.layers.${layer}.`;
    const rows = x.shape[0]!;
    const folded = typeof time === 'number' ? this.group * time : this.group === 1 ? time : `${this.group}*${time}`;

    let h = g.rmsNorm(x, this.#weight(`${prefix}input_layernorm.weight`), c.epsilon);
    const [q, k, v] = this.#queryKeyValue(g, prefix, h, [batch, time], rotary);
    const o = attention(layer, g.reshape(q, [batch, c.kvHeads, folded, c.headDim]), k, v);
    const merged = g.transpose(g.reshape(o, [batch, c.heads, time, c.headDim]), [0, 2, 1, 3]);
    const attended = this.#linear(g, g.reshape(merged, [rows, c.heads * c.headDim]), `${prefix}self_attn.o_proj`);
    // A norm of the sum that the next block reads, or of the block's own result.
    const norm = (y: Value, name: string) => g.rmsNorm(y, this.#weight(`${prefix}${name}.weight`), c.epsilon);
    const { normsAround } = this.#family;
    x = g.add(x, normsAround ? norm(attended, 'post_attention_layernorm') : attended);

    h = norm(x, normsAround ? 'pre_feedforward_layernorm' : 'post_attention_layernorm');
    const [gate, up] = this.#parts(g, h, `${prefix}mlp`, 'gate_up_proj', [
      ['gate_proj', c.feedForward],
      ['up_proj', c.feedForward],
    ]) as [Value, Value];
    const gated = this.#family.activation === 'silu' ? g.swiGlu(gate, up) : g.geGlu(gate, up);
    const fed = this.#linear(g, gated, `${prefix}mlp.down_proj`);
    return g.add(x, normsAround ? norm(fed, 'post_feedforward_layernorm') : fed);
  }

  /** Queries, keys and values by heads, [batch, heads, time, headDim], the first two normalised where the family does, and rotated. */
  #queryKeyValue(
    g: Differentiable,
    prefix: string,
    h: Value,
    [batch, time]: readonly [Dim, Dim],
    rotary: Rotary,
  ): [q: Value, k: Value, v: Value] {
    const { heads, kvHeads, headDim, epsilon, queryScale = headDim } = this.config;
    const [q, k, v] = this.#parts(g, h, `${prefix}self_attn`, 'qkv_proj', [
      ['q_proj', heads * headDim],
      ['k_proj', kvHeads * headDim],
      ['v_proj', kvHeads * headDim],
    ]) as [Value, Value, Value];
    const split = (y: Value, n: number, norm: string | null = null) => {
      const byHead = g.reshape(y, [batch, time, n, headDim]);
      const normalised = norm === null ? byHead : g.rmsNorm(byHead, this.#weight(`${prefix}${norm}.weight`), epsilon);
      return g.transpose(normalised, [0, 2, 1, 3]);
    };
    const { queryKeyNorm } = this.#family;
    const queries = g.rotate(split(q, heads, queryKeyNorm ? 'self_attn.q_norm' : null), rotary);
    return [
      // Attention divides by the square root of headDim.
      queryScale === headDim ? queries : g.mul(queries, g.scalar(Math.sqrt(headDim / queryScale))),
      g.rotate(split(k, kvHeads, queryKeyNorm ? 'self_attn.k_norm' : null), rotary),
      split(v, kvHeads),
    ];
  }

  /** Linear modules on the same input: one by one, or as the family's fused one, taken apart. */
  #parts(
    g: Differentiable,
    x: Value,
    block: string,
    fused: string,
    parts: readonly (readonly [module: string, size: number])[],
  ): Value[] {
    if (!this.#family.fused) return parts.map(([module]) => this.#linear(g, x, `${block}.${module}`));
    return g.split(
      this.#linear(g, x, `${block}.${fused}`),
      1,
      parts.map(([, size]) => size),
    );
  }

  #linear(g: Differentiable, x: Value, module: string): Value {
    const name = module.replace(/^model\.layers\.\d+\./, '');
    const bias = hasBias(this.config, name) ? this.#weight(`${module}.bias`) : null;
    const y = g.linear(x, this.#weight(`${module}.weight`), bias);
    const factors = this.#adapter?.factors.get(module);
    if (!factors) return y;
    const { scale } = factors;
    const { adapters } = this.#adapter!;
    if (adapters === null) return g.exactLinear(g.exactLinear(x, factors.A), factors.B, y, scale);
    const grouped = g.emitReshape(x, [adapters, 'rows of an adapter', x.shape[1]!]);
    const low = g.emitMatMul(grouped, factors.A, { transB: true });
    const branch = g.emitMatMul(low, factors.B, { transB: true, alpha: scale });
    return g.emitAdd(y, g.emitReshape(branch, y.shape));
  }
}

/** The weights of a decoder whose norms scale by more than their weights. Emitted once, outside every Loop. */
function withShiftedNorms(
  graph: Differentiable,
  config: DecoderConfig,
  weight: (name: string) => Value,
): (name: string) => Value {
  const shift = graph.scalar(familyOf(config).normShift);
  const norms = [...weightShapes(config).keys()].filter((name) => name.endsWith('norm.weight'));
  const shifted = new Map(norms.map((name) => [name, graph.add(weight(name), shift)]));
  return (name) => shifted.get(name) ?? weight(name);
}

/** Biases by window, each emitted when first asked for. */
export function biases(emit: (window: number | null) => Value): (window: number | null) => Value {
  const made = new Map<number | null, Value>();
  return (window) => {
    const bias = made.get(window) ?? emit(window);
    made.set(window, bias);
    return bias;
  };
}
