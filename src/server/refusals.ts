/** Refused requests, and items that could not be judged, in the server's log: each kind at once, and then how many more of it there were. */

/** Milliseconds in which a kind of refusal is told once. */
const QUIET_MS = 10_000;
/** Kinds that are told apart; a client's own words make no new one. */
const MOST_KINDS = 256;
const LONGEST_MESSAGE = 300;

export interface Refusal {
  /** A status, or what else happened. */
  readonly what: string;
  readonly route: string;
  readonly client: string;
  readonly message: string;
}

export class Refusals {
  readonly #log: (line: string) => void;
  readonly #now: () => number;
  readonly #told = new Map<string, { readonly at: number; untold: number }>();

  constructor(log: (line: string) => void, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  tell({ what, route, client, message }: Refusal): void {
    const kind = `${what} ${route}`;
    const last = this.#told.get(kind);
    const at = this.#now();
    if (last !== undefined && at - last.at < QUIET_MS) return void last.untold++;
    if (this.#told.size >= MOST_KINDS) this.#told.clear();
    this.#told.set(kind, { at, untold: 0 });
    const more = last?.untold ? `; ${last.untold} more like it before` : '';
    this.#log(`${what} ${route} from ${client}: ${message.slice(0, LONGEST_MESSAGE)}${more}`);
  }
}
