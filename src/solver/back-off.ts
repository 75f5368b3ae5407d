/** The waits between requests that fail, and the wait for an endpoint that is away. */
import { setTimeout as sleep } from 'node:timers/promises';
import { RunError } from '../errors.js';
import { RefusedRequest, TransientFault, type Wait } from './endpoint-client.js';

export interface Patience {
  /** Milliseconds before the first retry, doubled for each further one. */
  readonly first: number;
  readonly longest: number;
  /** Seconds that the endpoint has at the start to say what it serves. */
  readonly checkSeconds: number;
}

export const PATIENCE: Patience = { first: 500, longest: 60_000, checkSeconds: 30 };

/** Of the requests of one call. */
export class BackOff {
  readonly #patience: Patience;
  readonly #signal: AbortSignal;
  readonly #waits = new Set<Wait>();

  /** @param signal ends all waits */
  constructor(patience: Patience, signal: AbortSignal) {
    this.#patience = patience;
    this.#signal = signal;
  }

  /** What is waited for. */
  get waits(): Iterable<Wait> {
    return this.#waits;
  }

  /** Exponential, with jitter: between half of it and all of it, so that requests that failed together do not come back together. */
  async wait(failures: number, why: string): Promise<void> {
    const { first, longest } = this.#patience;
    const delay = Math.min(longest, first * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
    const wait = { until: performance.now() + delay, why };
    this.#waits.add(wait);
    try {
      await sleep(delay, undefined, { signal: this.#signal });
    } finally {
      this.#waits.delete(wait);
    }
  }
}

/** While an endpoint is away it is asked at least so often: after as many failures the time between doubles no more. */
const DOUBLINGS = 6;

/** Finds out whether an endpoint that fails is away, and waits for one that is: one wait for all requests of a call. */
export class Vigil {
  readonly #settings: { readonly endpoint: string; readonly waitSeconds: number };
  readonly #backOff: BackOff;
  readonly #probe: () => Promise<void>;
  #under: Promise<boolean> | null = null;

  /** @param probe asks for the least that can be asked; throws as `EndpointClient.complete` does */
  constructor(
    settings: { readonly endpoint: string; readonly waitSeconds: number },
    backOff: BackOff,
    probe: () => Promise<void>,
  ) {
    this.#settings = settings;
    this.#backOff = backOff;
    this.#probe = probe;
  }

  /**
   * Resolves once the endpoint answers, or refuses, which tells as much. @returns whether it was away
   * @throws RunError when it stays away for too long
   */
  untilAlive(): Promise<boolean> {
    this.#under ??= this.#watch().finally(() => (this.#under = null));
    return this.#under;
  }

  async #watch(): Promise<boolean> {
    const { endpoint, waitSeconds } = this.#settings;
    const began = performance.now();
    for (let failures = 0; ; failures++) {
      let fault;
      try {
        await this.#probe();
        return failures > 0;
      } catch (error) {
        if (error instanceof RefusedRequest) return failures > 0;
        if (!(error instanceof TransientFault)) throw error;
        fault = error;
      }
      const waited = (performance.now() - began) / 1000;
      if (waited >= waitSeconds) {
        throw new RunError(
          `the solver's endpoint ${endpoint} has stopped answering: ${fault.message} (waited ${Math.round(waited)} s, ` +
            'solver.waitSeconds); its answers so far are kept: see to its server, and run again to go on',
          { cause: fault },
        );
      }
      await this.#backOff.wait(Math.min(failures + 1, DOUBLINGS), fault.message);
    }
  }
}
