/**
 * Which tasks each session was paid for before: a trainer's run writes a task once, as a run of one's own does. What is kept is a digest
 * a task, of so many of the latest a session, in so many of the latest sessions.
 */
import { createHash } from 'node:crypto';

export interface RepeatSettings {
  /** Latest distinct tasks of a session that a new one is compared with; 0: repeats are not looked for. */
  readonly window: number;
  /** Sessions that are remembered; the one that was asked for longest ago gives way. */
  readonly sessions: number;
}

/** Who asks. */
export interface Asker {
  /** What shares one memory: a run, by the name that its requests give, else a client's address. */
  readonly session: string;
  /** The same when a request is sent again, as its answer was lost; another one for each other request. */
  readonly request: string;
}

export interface Admitted {
  /** Of each task whether the session has had it before, or the same request further up. */
  readonly repeats: readonly boolean[];
  /** Forget what this request brought: its answer did not arrive. */
  readonly withdraw: () => void;
}

const DIGEST_CHARACTERS = 24;

export class Repeats {
  readonly #settings: RepeatSettings;
  /** Session → digest of a task → the place in a request that was paid for it; both least recently seen first. */
  readonly #sessions = new Map<string, Map<string, Place>>();

  constructor(settings: RepeatSettings) {
    this.#settings = settings;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** @param tasks rendered texts, in a request's order; null for what is no valid task, which is no repeat */
  admit({ session, request }: Asker, tasks: readonly (string | null)[]): Admitted {
    const { window } = this.#settings;
    if (window === 0 || tasks.every((task) => task === null)) {
      return { repeats: tasks.map(() => false), withdraw: () => {} };
    }
    const paid = this.#session(session);
    const mine = new Map<string, Place>();
    const repeats = tasks.map((task, index) => {
      if (task === null) return false;
      const digest = createHash('sha256').update(task).digest('base64').slice(0, DIGEST_CHARACTERS);
      const before = paid.get(digest);
      const place = before ?? { request, index };
      paid.delete(digest);
      paid.set(digest, place);
      if (before === undefined) mine.set(digest, place);
      return before !== undefined && !(before.request === request && before.index === index);
    });
    // At the end alone: a request that is larger than the window is compared with itself in whole.
    for (const [digest] of paid) {
      if (paid.size <= window) break;
      paid.delete(digest);
    }
    const withdraw = (): void => {
      for (const [digest, place] of mine) if (paid.get(digest) === place) paid.delete(digest);
    };
    return { repeats, withdraw };
  }

  #session(name: string): Map<string, Place> {
    const paid = this.#sessions.get(name) ?? new Map<string, Place>();
    this.#sessions.delete(name);
    this.#sessions.set(name, paid);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > this.#settings.sessions) this.#sessions.delete(oldest!);
    return paid;
  }
}

interface Place {
  readonly request: string;
  readonly index: number;
}
