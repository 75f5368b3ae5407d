/**
 * A solver behind an OpenAI-compatible endpoint. What fails is asked for again, what came is kept; an attempt that could not be
 * had is an `error`, never an answer.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { RunError, UserError } from '../errors.js';
import { deriveSeed } from '../metrics/random.js';
import { chatRequest, readChatResponse, type ChatSettings } from './chat-protocol.js';
import { EndpointClient, RefusedRequest, TransientFault, type EndpointSettings } from './endpoint-client.js';
import type { Attempt, Solver } from './solver.js';
import { UsageMeter } from './usage.js';

export interface EndpointSolverSettings extends EndpointSettings, ChatSettings {
  /** Times that a request is sent again before its attempts are errors; a request that brought a choice starts the count anew. */
  readonly retries: number;
  /** `together`: all attempts at a question in one request; `single`: one a request; `auto`: together where the server does it. */
  readonly samples: 'auto' | 'together' | 'single';
}

export interface BackOff {
  /** Milliseconds before the first retry, doubled for each further one. */
  readonly first: number;
  readonly longest: number;
}

const DEFAULT_BACK_OFF: BackOff = { first: 500, longest: 60_000 };
/** Every server takes a seed of 31 bits. */
const SEEDS = 2 ** 31;
const ERROR: Attempt = { answer: '', status: 'error' };

/** @throws UserError when the endpoint cannot be reached, refuses the key or does not serve the model */
export async function openEndpointSolver(
  settings: EndpointSolverSettings,
  backOff: BackOff = DEFAULT_BACK_OFF,
): Promise<Solver> {
  const client = new EndpointClient(settings);
  try {
    await client.check();
  } catch (error) {
    await client.close();
    throw error;
  }
  return new EndpointSolver(client, settings, backOff);
}

/** One call of `attempt`. */
interface Work {
  readonly seed: number;
  readonly meter: UsageMeter;
  /** Aborted when one request fails in a way that every other would. */
  readonly stop: AbortController;
  lastFault: Error | null;
}

/** Attempts at a question that are gathered by requests after one another. */
interface Strand {
  readonly question: string;
  readonly count: number;
  /** Names its stream of seeds. */
  readonly name: string;
}

class EndpointSolver implements Solver {
  readonly name: string;
  readonly #client: EndpointClient;
  readonly #settings: EndpointSolverSettings;
  readonly #backOff: BackOff;
  #single: boolean;
  /** Whether the server has given several choices in one response. */
  #givesSeveral = false;

  constructor(client: EndpointClient, settings: EndpointSolverSettings, backOff: BackOff) {
    this.name = `${settings.model} at ${settings.endpoint}`;
    this.#client = client;
    this.#settings = settings;
    this.#backOff = backOff;
    this.#single = settings.samples === 'single';
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** @throws RunError when not a single attempt could be had; UserError when the endpoint refuses every request */
  async attempt(questions: readonly string[], k: number, seed: number, meter = new UsageMeter()): Promise<Attempt[][]> {
    const work: Work = { seed, meter, stop: new AbortController(), lastFault: null };
    // As many as there are requests.
    setMaxListeners(0, work.stop.signal);
    const attempts = await Promise.all(
      questions.map(async (question, i) => {
        try {
          return await this.#gather({ question, count: k, name: String(i) }, work);
        } catch (error) {
          work.stop.abort(error);
          throw error;
        }
      }),
    );
    if (work.lastFault !== null && attempts.flat().every(({ status }) => status === 'error')) {
      throw new RunError(
        `the solver's endpoint ${this.#settings.endpoint} answered none of ${questions.length} questions: ` +
          `${work.lastFault.message}; see to its server, and run again to go on`,
        { cause: work.lastFault },
      );
    }
    return attempts;
  }

  /** So many attempts at a question, one response after another; errors in place of those that could not be had. */
  async #gather(strand: Strand, work: Work): Promise<Attempt[]> {
    const { question, count, name } = strand;
    const attempts: Attempt[] = [];
    let failures = 0;
    for (let round = 0; attempts.length < count; round++) {
      const missing = count - attempts.length;
      if (missing > 1 && this.#single) {
        const singles = Array.from({ length: missing }, (_, i) => ({
          question,
          count: 1,
          name: `${name}/${round}.${i}`,
        }));
        const parts = await Promise.all(singles.map((each) => this.#gather(each, work)));
        return [...attempts, ...parts.flat()];
      }
      if (failures > 0) work.meter.add({ retries: 1 });
      try {
        const seed = deriveSeed(work.seed, `endpoint ${name}`, round) % SEEDS;
        const got = await this.#ask(question, missing, seed, work);
        attempts.push(...got);
        if (got.length > 0) {
          failures = 0;
          continue;
        }
        work.lastFault = new TransientFault('a response without a whole choice');
      } catch (error) {
        if (error instanceof UserError || work.stop.signal.aborted) throw error;
        work.lastFault = error as Error;
        if (error instanceof RefusedRequest) {
          if (missing === 1 || !(await this.#worksAlone(strand, attempts, round, work))) break;
          continue;
        }
      }
      failures++;
      if (failures > this.#settings.retries) break;
      await sleep(this.#delay(failures), undefined, { signal: work.stop.signal });
    }
    return [...attempts, ...Array.from({ length: count - attempts.length }, () => ERROR)];
  }

  /** A request for several was refused. If one for a single choice is not, the server does no more, and is asked for no more. */
  async #worksAlone(strand: Strand, attempts: Attempt[], round: number, work: Work): Promise<boolean> {
    if (this.#settings.samples === 'together' || this.#givesSeveral) return false;
    work.meter.add({ retries: 1 });
    try {
      const seed = deriveSeed(work.seed, `endpoint ${strand.name} alone`, round) % SEEDS;
      attempts.push(...(await this.#ask(strand.question, 1, seed, work)));
    } catch (error) {
      if (error instanceof RefusedRequest) return false;
      // Whether it would have been refused is not known yet: the strand asks again.
      if (!(error instanceof TransientFault)) throw error;
    }
    this.#single = true;
    return true;
  }

  /** @throws TransientFault, RefusedRequest, UserError */
  async #ask(question: string, n: number, seed: number, { meter, stop }: Work): Promise<readonly Attempt[]> {
    const body = chatRequest(this.#settings, question, n, seed);
    meter.add({ requests: 1 });
    const text = await this.#client.complete(body, stop.signal);
    let response;
    try {
      response = readChatResponse(text, n);
    } catch (cause) {
      throw new TransientFault((cause as Error).message, { cause });
    }
    meter.add(response.usage);
    const { attempts } = response;
    if (attempts.length > 1) this.#givesSeveral = true;
    if (n > 1 && attempts.length === 1 && !this.#givesSeveral && this.#settings.samples === 'auto') this.#single = true;
    return attempts;
  }

  /** Exponential, with jitter: between half of it and all of it, so that requests that failed together do not come back together. */
  #delay(failures: number): number {
    const { first, longest } = this.#backOff;
    return Math.min(longest, first * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
  }
}
