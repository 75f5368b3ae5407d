/** An ONNX graph under construction: named values with shapes and element types, nodes, constants, subgraphs. */
import type { ComputeType } from './compute-type.js';
import { ATTRIBUTE_TYPE, DATA_TYPE, encodeModel } from './proto.js';
import type { AttributeMessage, DType, GraphMessage, NodeMessage, TensorMessage } from './proto.js';

/** A dimension: a size, or the name of one that is only known at run time. */
export type Dim = number | string;
export type Shape = readonly Dim[];

export interface Value {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  /** Whether a gradient may be asked for with respect to this value. */
  requiresGrad: boolean;
}

/** Which operators a graph may use: `fused` adds ONNX Runtime's contributed operators, `standard` keeps to the ONNX specification. */
export type Dialect = 'fused' | 'standard';

type Attribute = number | string | readonly number[] | { readonly float: number } | Graph;

/** Where an initializer's bytes lie in a file beside the model. */
export interface ExternalData {
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/** Of a root graph the type of its large products, of a branch its name. */
export interface GraphOptions {
  readonly dtype?: ComputeType;
  readonly branch?: string;
}

export class Graph {
  readonly dialect: Dialect;
  /** The type of large products, here and in all graphs inside. */
  readonly dtype: ComputeType;
  readonly nodes: NodeMessage[] = [];
  readonly inputs: Value[] = [];
  readonly outputs: Value[] = [];
  /** Of a branch: the names of its outputs, which its If gives them. */
  readonly resultNames: string[] = [];
  /** Names of outputs that stay on the device where the provider can keep them there. */
  readonly deviceOutputs: string[] = [];
  readonly #root: Graph;
  readonly #parent: Graph | null;
  readonly #branch: string | null;
  readonly #initializers: TensorMessage[] = [];
  readonly #initialized = new Map<string, Value>();
  readonly #constants = new Map<string, Value>();
  readonly #dims = new Map<string, Value>();
  readonly #casts = new Map<string, Value>();
  #names = 0;

  /**
   * A root graph, or inside a parent the body of a Loop or, with `branch`, a branch of an If. Both see their parent's values and dimensions
   * and keep their constants in the root. A branch's inputs are the root's, under `branch/name`.
   */
  constructor(scope: Dialect | Graph, { dtype = 'float32', branch }: GraphOptions = {}) {
    this.dialect = scope instanceof Graph ? scope.dialect : scope;
    this.dtype = scope instanceof Graph ? scope.dtype : dtype;
    this.#parent = scope instanceof Graph ? scope : null;
    this.#root = scope instanceof Graph ? scope.#root : this;
    this.#branch = branch ?? null;
  }

  freshName(stem: string): string {
    return `${stem}_${this.#root.#names++}`;
  }

  input(name: string, shape: Shape, dtype: DType = 'float32', requiresGrad = false): Value {
    if (this.#branch === null) {
      const value = { name, shape, dtype, requiresGrad };
      this.inputs.push(value);
      return value;
    }
    const full = `${this.#branch}/${name}`;
    // Of any size: empty while another branch runs.
    const open = shape.map((_, axis) => `${full}/${axis}`);
    this.#root.inputs.push({ name: full, shape: open, dtype, requiresGrad: false });
    return { name: full, shape, dtype, requiresGrad };
  }

  /** Declare `value` an output; with a name, under that name. */
  output(value: Value, name?: string): void {
    if (this.#branch !== null) {
      this.resultNames.push(name ?? value.name);
      this.outputs.push(this.op('Identity', [value], {}, value.shape, value.dtype));
    } else this.outputs.push(name ? this.op('Identity', [value], {}, value.shape, value.dtype, name) : value);
  }

  /** Declare `value` an output under a name that stays on the device, for another run to read. */
  deviceOutput(value: Value, name: string): void {
    this.output(value, name);
    this.deviceOutputs.push(name);
  }

  /** A constant tensor; lives in the root graph whatever graph asks, and is the one of that name when there is one. */
  initializer(name: string, shape: readonly number[], dtype: DType, data: ArrayBufferView | ExternalData): Value {
    const known = this.#root.#initialized.get(name);
    if (known) return known;
    const tensor: TensorMessage = { name, dims: [...shape], data_type: DATA_TYPE[dtype] };
    if ('file' in data) {
      tensor.data_location = 1;
      tensor.external_data = [
        { key: 'location', value: data.file },
        { key: 'offset', value: String(data.offset) },
        { key: 'length', value: String(data.bytes) },
      ];
    } else tensor.raw_data = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#root.#initializers.push(tensor);
    const value = { name, shape, dtype, requiresGrad: false };
    this.#root.#initialized.set(name, value);
    return value;
  }

  #constant(key: string, make: () => Value): Value {
    const cache = this.#root.#constants;
    let value = cache.get(key);
    if (!value) cache.set(key, (value = make()));
    return value;
  }

  /** An int64 vector. */
  int64(values: readonly number[]): Value {
    return this.#constant(`int64:${values.join()}`, () =>
      this.initializer(this.freshName('int64'), [values.length], 'int64', BigInt64Array.from(values.map(BigInt))),
    );
  }

  int64Scalar(value: number): Value {
    return this.#constant(`int64 scalar:${value}`, () =>
      this.initializer(this.freshName('int64'), [], 'int64', BigInt64Array.of(BigInt(value))),
    );
  }

  int32Scalar(value: number): Value {
    return this.#constant(`int32 scalar:${value}`, () =>
      this.initializer(this.freshName('int32'), [], 'int32', Int32Array.of(value)),
    );
  }

  scalar(value: number): Value {
    return this.#constant(`float32:${value}`, () =>
      this.initializer(this.freshName('float32'), [], 'float32', Float32Array.of(value)),
    );
  }

  boolScalar(value: boolean): Value {
    return this.#constant(`bool:${value}`, () =>
      this.initializer(this.freshName('bool'), [], 'bool', Uint8Array.of(value ? 1 : 0)),
    );
  }

  /** 0, 1, …, n − 1 as int32. */
  iota(n: number): Value {
    return this.#constant(`iota:${n}`, () =>
      this.initializer(
        this.freshName('iota'),
        [n],
        'int32',
        Int32Array.from({ length: n }, (_, i) => i),
      ),
    );
  }

  /** Give a symbolic dimension its run-time size, a one-element int64 vector, in this graph and those inside it. */
  defineDim(name: string, size: Value): void {
    this.#dims.set(name, size);
  }
  #sizeOf(name: string): Value | undefined {
    return this.#dims.get(name) ?? (this.#parent === null ? undefined : this.#parent.#sizeOf(name));
  }

  /** A dimension as a one-element int64 vector. */
  dim(dim: Dim): Value {
    if (typeof dim === 'number') return this.int64([dim]);
    const size = this.#sizeOf(dim);
    if (!size) throw new Error(`dimension '${dim}' has no run-time size: call defineDim first`);
    return size;
  }

  /** A shape as an int64 vector that may depend on run-time sizes. */
  shapeVector(shape: Shape): Value {
    if (shape.every((d) => typeof d === 'number')) return this.int64(shape);
    if (shape.length === 1) return this.dim(shape[0]!);
    return this.op(
      'Concat',
      shape.map((d) => this.dim(d)),
      { axis: 0 },
      [shape.length],
      'int64',
    );
  }

  /** Append a node with one output. */
  op(
    type: string,
    inputs: readonly (Value | null)[],
    attributes: Readonly<Record<string, Attribute>>,
    shape: Shape,
    dtype: DType = 'float32',
    name?: string,
  ): Value {
    return this.ops(type, inputs, attributes, [{ shape, dtype, name }])[0]!;
  }

  /** Append a node with several outputs. `domain` follows from the operator: contributed ones live in com.microsoft. */
  ops(
    type: string,
    inputs: readonly (Value | null)[],
    attributes: Readonly<Record<string, Attribute>>,
    outputs: readonly { shape: Shape; dtype?: DType; name?: string | undefined }[],
  ): Value[] {
    const values = outputs.map((o) => ({
      name: o.name ?? this.freshName(type),
      shape: o.shape,
      dtype: o.dtype ?? 'float32',
      requiresGrad: false,
    }));
    this.nodes.push({
      op_type: type,
      domain: CONTRIBUTED.has(type) ? 'com.microsoft' : '',
      name: this.freshName(`node_${type}`),
      input: inputs.map((v) => v?.name ?? ''),
      output: values.map((v) => v.name),
      attribute: Object.entries(attributes).map(([key, value]) => encodeAttribute(key, value)),
    });
    return values;
  }

  /** A constant or an input of a graph around every Loop in another type, cast there: once, whatever turns the Loops take. */
  castOutsideLoops(value: Value, dtype: DType): Value {
    if (value.dtype === dtype) return value;
    const graph = this.#root.#initialized.has(value.name) ? this.#root : this.#aroundLoops();
    const key = `${value.name}:${dtype}`;
    let cast = graph.#casts.get(key);
    if (!cast) graph.#casts.set(key, (cast = graph.op('Cast', [value], { to: DATA_TYPE[dtype] }, value.shape, dtype)));
    return cast;
  }

  #aroundLoops(): Graph {
    return this.#parent === null || this.#branch !== null ? this : this.#parent.#aroundLoops();
  }

  message(): GraphMessage {
    const info = (v: Value) => ({
      name: v.name,
      type: {
        tensor_type: {
          elem_type: DATA_TYPE[v.dtype],
          shape: { dim: v.shape.map((d) => (typeof d === 'number' ? { dim_value: d } : { dim_param: d })) },
        },
      },
    });
    return {
      name: this.freshName('graph'),
      node: this.nodes,
      initializer: this.#initializers,
      input: this.inputs.map(info),
      output: this.outputs.map(info),
    };
  }

  /** The model's bytes, for a session. */
  encode(): Uint8Array {
    return encodeModel(this.message());
  }
}

const CONTRIBUTED = new Set(['FusedMatMul', 'RotaryEmbedding']);

function encodeAttribute(name: string, value: Attribute): AttributeMessage {
  if (value instanceof Graph) return { name, type: ATTRIBUTE_TYPE.graph, g: value.message() };
  if (typeof value === 'number') return { name, type: ATTRIBUTE_TYPE.int, i: value };
  if (typeof value === 'string') return { name, type: ATTRIBUTE_TYPE.string, s: Buffer.from(value) };
  if ('float' in value) return { name, type: ATTRIBUTE_TYPE.float, f: value.float };
  return { name, type: ATTRIBUTE_TYPE.ints, ints: [...value] };
}
