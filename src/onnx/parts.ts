/**
 * One graph out of several that share constants: an If for each part, of which one runs. Branches capture the root's initializers, so that a
 * session of all parts holds one copy of a model's weights.
 */
import { Differentiable } from './differentiable.js';
import type { Graph, Value } from './graph.js';
import { bool, floats, integers, scalar, Session } from './session.js';
import type { Feeds, Fetches, SessionSettings } from './session.js';

/** Emits a part's inputs, nodes and outputs into a graph of its own or a branch; `shared` was made in the root. */
export type BuildPart<Shared> = (g: Differentiable, shared: Shared) => void;

/** A compiled graph of several parts. */
export class PartsSession {
  readonly #session: Session;
  readonly #parts: readonly Part[];
  /** What the inputs of parts that do not run are fed. */
  readonly #idle: Feeds;

  private constructor(session: Session, parts: readonly Part[], idle: Feeds) {
    this.#session = session;
    this.#parts = parts;
    this.#idle = idle;
  }

  /** `root` is the graph to build in, still empty. */
  static async create<Shared>(
    root: Differentiable,
    share: (root: Differentiable) => Shared,
    builds: readonly BuildPart<Shared>[],
    settings: SessionSettings,
  ): Promise<PartsSession> {
    const chosen = root.input(CHOSEN, [], 'int64');
    const shared = share(root);
    const parts = builds.map((build, i) => emitPart(root, chosen, i, (branch) => build(branch, shared)));
    const idle = Object.fromEntries(
      root.inputs.filter((v) => v !== chosen).map((v) => [v.name, emptyTensor(v)] as const),
    );
    return new PartsSession(await Session.create(root, settings), parts, idle);
  }

  /** Run one part by its place in `builds`, with inputs and outputs by its own names. */
  async run(index: number, feeds: Feeds): Promise<Fetches> {
    const { prefix, results } = this.#parts[index]!;
    const all: Feeds = { ...this.#idle, [CHOSEN]: integers(BigInt64Array.of(BigInt(index)), []) };
    for (const [name, tensor] of Object.entries(feeds)) all[`${prefix}/${name}`] = tensor;
    const outputs = results.map((name) => `${prefix}/${name}`);
    const out = await this.#session.run(all, outputs);
    return Object.fromEntries(results.map((name, i) => [name, out[outputs[i]!]!]));
  }

  release(): Promise<void> {
    return this.#session.release();
  }
}

const CHOSEN = 'part';

interface Part {
  readonly prefix: string;
  readonly results: readonly string[];
}

function emitPart(root: Differentiable, chosen: Value, index: number, build: (g: Differentiable) => void): Part {
  const prefix = String(index);
  const branch = new Differentiable(root, { branch: prefix });
  build(branch);
  const idle = new Differentiable(root, { branch: prefix });
  for (const { shape, dtype } of branch.outputs) idle.output(idle.cast(idle.zeros(shape.map(() => 0)), dtype));
  const runs = root.op('Equal', [chosen, root.int64Scalar(index)], {}, [], 'bool');
  const branches: Record<string, Graph> = { then_branch: branch, else_branch: idle };
  const outputs = root.ops(
    'If',
    [runs],
    branches,
    branch.outputs.map(({ shape, dtype }, i) => {
      const name = `${prefix}/${branch.resultNames[i]!}`;
      return { shape: shape.map((_, axis) => `${name}/${axis}`), dtype, name };
    }),
  );
  for (const value of outputs) root.output(value);
  return { prefix, results: branch.resultNames };
}

/** No elements, or for a scalar, zero. */
function emptyTensor({ shape, dtype }: Value): Feeds[string] {
  if (dtype === 'bool') return bool(false);
  const size = shape.length ? 0 : 1;
  const dims = shape.map(() => 0);
  if (dtype === 'int64') return integers(new BigInt64Array(size), dims);
  return shape.length ? floats(new Float32Array(0), dims) : scalar(0);
}
