/** The compiled graphs of one checkpoint: all in one session that holds its weights once, or each in a session of its own. */
import { computeType } from '../onnx/provider-types.js';
import { Differentiable } from '../onnx/differentiable.js';
import { PartsSession } from '../onnx/parts.js';
import { dialectOf, Session } from '../onnx/session.js';
import type { Feeds, Fetches, SessionSettings } from '../onnx/session.js';
import { bindWeights, storedType } from './checkpoint.js';
import type { BoundWeights, Checkpoint } from './checkpoint.js';
import { memoryPlan } from './memory.js';
import type { MemoryPlan, MemorySetting } from './memory.js';

/** A graph by its name, and what emits it over weights that are bound when asked for. */
export interface ModelGraph {
  readonly key: string;
  readonly emit: (g: Differentiable, weights: () => BoundWeights) => void;
}

interface SharedSession {
  readonly session: PartsSession;
  readonly keys: readonly string[];
}

/** Graphs kept compiled. */
const KEPT_GRAPHS = 10;

export class ModelSessions {
  readonly checkpoint: Checkpoint;
  readonly plan: MemoryPlan;
  readonly settings: SessionSettings;
  /** Least recently run first. */
  readonly #graphs = new Map<string, ModelGraph>();
  readonly #sessions = new Map<string, Session>();
  #shared: SharedSession | null = null;

  constructor(checkpoint: Checkpoint, settings: SessionSettings, memory: MemorySetting = 'auto') {
    this.checkpoint = checkpoint;
    this.plan = memoryPlan(checkpoint.config, memory, settings.provider);
    this.settings = { ...settings, externalFolder: checkpoint.weightsFolder };
  }

  /** Have a graph compiled with the next that runs: in one session, each new graph has all of them compiled again. */
  async add(graph: ModelGraph): Promise<void> {
    if (!this.#graphs.has(graph.key) && this.#graphs.size >= KEPT_GRAPHS) {
      await this.drop(this.#graphs.keys().next().value!);
    }
    this.#graphs.delete(graph.key);
    this.#graphs.set(graph.key, graph);
  }

  async run(graph: ModelGraph, feeds: Feeds): Promise<Fetches> {
    await this.add(graph);
    if (!this.shared) return (await this.#ownSession(graph)).run(feeds);
    const { session, keys } = await this.#sharedSession(graph);
    return session.run(keys.indexOf(graph.key), feeds);
  }

  /** Forget a graph. Its part of a shared session goes when that is next compiled. */
  async drop(key: string): Promise<void> {
    this.#graphs.delete(key);
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    await session?.release();
  }

  async release(): Promise<void> {
    for (const key of this.#graphs.keys()) await this.drop(key);
    await this.#shared?.session.release();
    this.#shared = null;
  }

  /** Whether all graphs are one session. */
  get shared(): boolean {
    return this.plan.shareWeights;
  }

  #root(): Differentiable {
    const { provider, dtype = 'auto' } = this.settings;
    const stored = () => storedType(this.checkpoint);
    return new Differentiable(dialectOf(provider), { dtype: computeType({ dtype, stored }, provider) });
  }

  async #ownSession({ key, emit }: ModelGraph): Promise<Session> {
    let session = this.#sessions.get(key);
    if (session) return session;
    const g = this.#root();
    emit(g, () => bindWeights(g, this.checkpoint));
    session = await Session.create(g, this.settings);
    this.#sessions.set(key, session);
    return session;
  }

  async #sharedSession({ key }: ModelGraph): Promise<SharedSession> {
    if (this.#shared?.keys.includes(key)) return this.#shared;
    await this.#shared?.session.release();
    this.#shared = null;
    const graphs = [...this.#graphs.values()];
    const session = await PartsSession.create(
      this.#root(),
      (root) => bindWeights(root, this.checkpoint),
      graphs.map(
        ({ emit }) =>
          (g: Differentiable, weights: BoundWeights) =>
            emit(g, () => weights),
      ),
      { ...this.settings, prepack: false },
    );
    return (this.#shared = { session, keys: graphs.map((graph) => graph.key) });
  }
}
