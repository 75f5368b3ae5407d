/**
 * A solver behind an OpenAI-compatible endpoint. What fails is asked for again, what came is kept; an attempt that could not be
 * had is an `error`, never an answer.
 */
import { setMaxListeners } from 'node:events';
import { RunError, UserError } from '../errors.js';
import { deriveSeed } from '../metrics/random.js';
import { BackOff, PATIENCE, Vigil, type Patience } from './back-off.js';
import { AnswerWatch, countEndings, NoAnswers } from './answer-watch.js';
import type { ChatResponse, ChatSettings } from './chat-protocol.js';
import { NoRoom, RefusedRequest, TransientFault, type EndpointSettings } from './endpoint-client.js';
import { Endpoint, SHORTEST_QUESTION } from './endpoint.js';
import type { PromptOf } from './request-form.js';
import { settingToChange } from './refused-settings.js';
import type { AnswerKeeper, Attempt, AttemptOptions, DrawnAttempt, Solver } from './solver.js';
import { NO_USAGE, unansweredNotes, UsageMeter } from './usage.js';

export interface EndpointSolverSettings extends EndpointSettings, ChatSettings {
  /**
   * Times that a request is sent again before it is asked whose fault that is, the endpoint's or the question's; a request that brought a
   * choice starts the count anew.
   */
  readonly retries: number;
  /** Seconds that an endpoint which has stopped answering is waited for. */
  readonly waitSeconds: number;
  /** `together`: all attempts at a question in one request; `single`: one a request; `auto`: together where the server does it. */
  readonly samples: 'auto' | 'together' | 'single';
}

/** Milliseconds between two words on how far a call is. */
const TELL_EVERY = 1000;
/** Every server takes a seed of 31 bits. */
const SEEDS = 2 ** 31;
const ERROR: DrawnAttempt = { answer: '', status: 'error', seed: null, draw: null };
/** The server would read a part of the question as something that it is not. */
const UNSAFE =
  'questions with the text of a special token (<|im_end|>, </s>) are not asked, since the server would read it as the token: give solver.tokenizer, and they go as token ids';
/** As of a local solver, at a question that leaves no room for an answer. */
const CUT_OFF: Attempt = { answer: '', status: 'cut_off' };

/**
 * @param warn is told what is odd of the endpoint's answers, each oddity once
 * @param promptOf how a question is put to the model
 * @throws UserError when the endpoint cannot be reached, refuses the key or does not serve the model
 */
export async function openEndpointSolver(
  settings: EndpointSolverSettings,
  patience: Patience = PATIENCE,
  warn: (message: string) => void = () => {},
  promptOf: PromptOf = (question) => ({ turn: question }),
): Promise<EndpointSolver> {
  const watch = new AnswerWatch(settings, warn);
  const endpoint = await Endpoint.open(settings, promptOf, patience, (message) => watch.tellOnce(message));
  return new EndpointSolver(endpoint, settings, watch, patience);
}

/** One call of `attempt`. */
interface Work {
  readonly seed: number;
  readonly meter: UsageMeter;
  readonly keeper: AnswerKeeper | undefined;
  /** Aborted when one request fails in a way that every other would. */
  readonly stop: AbortController;
  readonly backOff: BackOff;
  readonly vigil: Vigil;
  lastFault: Error | null;
  /** When an answer last came, by the clock of this process. */
  lastAnswer: number;
}

/** A question of a call, with its attempts as far as they are there. */
interface Question {
  readonly index: number;
  readonly text: string;
  readonly attempts: (DrawnAttempt | undefined)[];
}

/** Places among a question's attempts that are filled by requests after one another. */
interface Strand {
  readonly question: Question;
  readonly places: readonly number[];
  /** Names its stream of seeds. */
  readonly name: string;
  /** Of its first request. */
  readonly round: number;
}

export class EndpointSolver implements Solver {
  readonly name: string;
  readonly #endpoint: Endpoint;
  readonly #settings: EndpointSolverSettings;
  readonly #patience: Patience;
  readonly #watch: AnswerWatch;
  #single: boolean;
  /** Whether the server has given several choices in one response. */
  #givesSeveral = false;
  /** Whether the server has answered any question, so that its settings are none that it refuses. */
  #answers = false;
  /** What becomes of the shortest question, once that has to be known. */
  #shortest: Promise<void> | null = null;

  constructor(endpoint: Endpoint, settings: EndpointSolverSettings, watch: AnswerWatch, patience: Patience) {
    this.name = `${settings.model} at ${settings.endpoint}`;
    this.#endpoint = endpoint;
    this.#settings = settings;
    this.#watch = watch;
    this.#patience = patience;
    this.#single = settings.samples === 'single' || settings.fields.n === null;
    if (!endpoint.served.isLlamaCpp || this.#single) return;
    const account = 'llama.cpp accounts for one choice of a request, however many it gives';
    this.#single = settings.samples === 'auto';
    this.#watch.tellOnce(
      this.#single
        ? `${account}: attempts are asked for one by one`
        : `${account}: completion tokens are too few with solver.samples: together`,
    );
  }

  /** Fields of plain sampling that the endpoint refuses, so that its own defaults hold. */
  get refusedSampling(): string[] {
    return this.#endpoint.refusedSampling;
  }

  /** Ask the shortest question before any work. @throws as `Endpoint.prove` */
  prove(): Promise<void> {
    return this.#endpoint.prove();
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  /**
   * Errors are of questions that the endpoint fails at or refuses, while it answers others.
   * @throws RunError when the endpoint has stopped answering, or refuses every request; NoAnswers when nearly all attempts are empty or
   * refused; UserError when that is for the settings
   */
  async attempt(
    questions: readonly string[],
    k: number,
    seed: number,
    { meter = new UsageMeter(), keeper, onProgress }: AttemptOptions = {},
  ): Promise<DrawnAttempt[][]> {
    const stop = new AbortController();
    const backOff = new BackOff(this.#patience, stop.signal);
    const vigil = new Vigil(this.#settings, backOff, () => this.#endpoint.probe(meter, stop.signal));
    const lastAnswer = Number.NEGATIVE_INFINITY;
    const work: Work = { seed, meter, keeper, stop, backOff, vigil, lastFault: null, lastAnswer };
    // As many as there are requests.
    setMaxListeners(0, stop.signal);
    let done = 0;
    const telling = setInterval(() => onProgress?.(done, this.#noteOf(work)), TELL_EVERY);
    try {
      const attempts = await Promise.all(
        questions.map(async (text, index) => {
          const own = await this.#gather(text, index, k, work);
          done++;
          return own;
        }),
      );
      if (work.lastAnswer < 0 && work.lastFault !== null) await this.#explain(work.lastFault, questions.length, work);
      return attempts;
    } catch (error) {
      stop.abort(error);
      throw error;
    } finally {
      clearInterval(telling);
    }
  }

  /** K attempts at a question, errors in place of those that could not be had. */
  async #gather(text: string, index: number, k: number, work: Work): Promise<DrawnAttempt[]> {
    if (!this.#endpoint.takes(text)) {
      this.#watch.tellOnce(UNSAFE);
      return Array.from({ length: k }, () => ERROR);
    }
    const attempts = Array.from({ length: k }, (): DrawnAttempt | undefined => undefined);
    const question: Question = { index, text, attempts };
    let round = 0;
    for (const response of work.keeper?.kept(index) ?? []) {
      for (const { place, ...attempt } of response.attempts) attempts[place] = attempt;
      round = Math.max(round, response.round + 1);
      if (response.attempts.some(({ status }) => status === 'answered')) this.#answers = true;
      this.#watch.judge(question, response.attempts);
    }
    const places = [...attempts.keys()];
    await this.#fill({ question, places, name: String(index), round }, work);
    return attempts.map((attempt) => attempt ?? ERROR);
  }

  /** Ask for a strand's missing attempts until all are there, or are refused, or fail while the endpoint answers others. */
  async #fill(strand: Strand, work: Work): Promise<void> {
    let failures = 0;
    let firstFailure = 0;
    let isDoubted = false;
    for (let { round } = strand; ; round++) {
      const missing = missingPlaces(strand);
      if (missing.length === 0) return;
      if (missing.length > 1 && this.#single) {
        const singles = missing.map((place) => ({
          ...strand,
          places: [place],
          name: `${strand.name}/${place}`,
          round: 0,
        }));
        await Promise.all(singles.map((each) => this.#fill(each, work)));
        return;
      }
      if (failures > 0) work.meter.add({ retries: 1 });
      const started = performance.now();
      try {
        await this.#ask(strand, missing.length, `endpoint ${strand.name}`, round, work);
        failures = 0;
        isDoubted = false;
        continue;
      } catch (error) {
        if (error instanceof UserError || error instanceof NoAnswers || work.stop.signal.aborted) throw error;
        work.lastFault = error as Error;
        if (error instanceof RefusedRequest) {
          if (missing.length === 1 || !(await this.#worksAlone(strand, round, work))) return;
          continue;
        }
      }
      failures++;
      if (failures === 1) firstFailure = started;
      if (failures <= this.#settings.retries) {
        await work.backOff.wait(failures, work.lastFault.message);
      } else if (await work.vigil.untilAlive()) {
        // It was away: what failed meanwhile says nothing of the question.
        failures = 0;
        isDoubted = false;
      } else {
        // It may have come back only now: the question is at fault where it fails once more, or others were answered meanwhile.
        if (isDoubted || work.lastAnswer > firstFailure) return;
        isDoubted = true;
      }
    }
  }

  /** A request for several was refused. If one for a single choice is not, the server does no more, and is asked for no more. */
  async #worksAlone(strand: Strand, round: number, work: Work): Promise<boolean> {
    if (this.#settings.samples === 'together' || this.#givesSeveral) return false;
    work.meter.add({ retries: 1 });
    try {
      await this.#ask(strand, 1, `endpoint ${strand.name} alone`, round, work);
    } catch (error) {
      if (error instanceof RefusedRequest) return false;
      // Whether it would have been refused is not known yet: the strand asks again.
      if (!(error instanceof TransientFault)) throw error;
    }
    this.#single = true;
    return true;
  }

  /**
   * Ask for `n` attempts and put what comes in their places: one at least.
   * @throws TransientFault, RefusedRequest, NoAnswers, UserError
   */
  async #ask(strand: Strand, n: number, stream: string, round: number, work: Work): Promise<void> {
    const seed = deriveSeed(work.seed, stream, round) % SEEDS;
    work.meter.add({ requests: 1 });
    let response: ChatResponse;
    try {
      response = await this.#complete(strand.question.text, n, seed, work.stop.signal);
    } catch (error) {
      if (!(error instanceof RefusedRequest)) throw error;
      await this.#requireSettings(error, n, work);
      if (!(error instanceof NoRoom)) throw error;
      // Like the local solver: a question too long to be read with room for an answer is one that it fails at.
      response = { attempts: missingPlaces(strand).map(() => CUT_OFF), usage: {}, remarks: [], why: '' };
    }
    const { attempts } = response;
    const usage = { ...response.usage, ...countEndings(attempts) };
    work.meter.add(usage);
    for (const remark of response.remarks) this.#watch.tellOnce(remark);
    if (attempts.length === 0) throw new TransientFault(response.why);
    work.lastAnswer = performance.now();
    const missing = missingPlaces(strand);
    const placed = attempts.map((attempt, i) => ({ ...attempt, seed, draw: i, place: missing[i]! }));
    for (const { place, ...attempt } of placed) strand.question.attempts[place] = attempt;
    work.keeper?.keep(strand.question.index, {
      round,
      attempts: placed,
      usage: { ...NO_USAGE, requests: 1, ...usage },
    });
    this.#watch.judge(strand.question, attempts);
  }

  /** @throws TransientFault, RefusedRequest, UserError */
  async #complete(question: string, n: number, seed: number, signal: AbortSignal): Promise<ChatResponse> {
    const response = await this.#endpoint.complete({ question, n, seed }, signal);
    const came = response.attempts.length;
    if (came > 0) this.#answers = true;
    if (came > 1) this.#givesSeveral = true;
    if (n > 1 && came === 1 && !this.#givesSeveral && this.#settings.samples === 'auto') this.#single = true;
    return response;
  }

  /**
   * A question was said to be too long, or a field of its request to be wrong. If the shortest question is refused too, that is for the settings.
   * @throws UserError then
   */
  async #requireSettings(refusal: RefusedRequest, n: number, work: Work): Promise<void> {
    const { endpoint, maxNewTokens, samples } = this.#settings;
    const isForMany = n > 1 && samples !== 'together';
    const advice =
      refusal instanceof NoRoom
        ? `solver.maxNewTokens: ${endpoint} has no room for an answer of ${maxNewTokens} tokens even at a question of one character; lower it`
        : settingToChange(this.#settings, isForMany ? 1 : n, refusal.status, refusal.said);
    if (advice === null) return;
    const error = new UserError(`${advice} (${endpoint} refuses every request, ${refusal.message})`, {
      cause: refusal,
    });
    // The shortest question is asked once.
    if (n > 1 && !this.#givesSeveral && advice.startsWith('solver.samples')) throw error;
    try {
      await this.#askShortest(work);
    } catch (cause) {
      throw cause instanceof RefusedRequest ? error : cause;
    }
  }

  /** Whether the server takes any request of these settings. @throws RefusedRequest when not, TransientFault when that is not known */
  async #askShortest({ meter, stop }: Work): Promise<void> {
    if (this.#answers) return;
    this.#shortest ??= (async () => {
      meter.add({ requests: 1 });
      meter.add((await this.#complete(SHORTEST_QUESTION, 1, 0, stop.signal)).usage);
    })().finally(() => (this.#shortest = null));
    await this.#shortest;
  }

  /** Nothing came. @throws RunError unless that was for the questions, and the endpoint answers others */
  async #explain(fault: Error, questions: number, work: Work): Promise<void> {
    if (this.#answers) return;
    let cause = fault;
    if (fault instanceof RefusedRequest) {
      try {
        return await this.#askShortest(work);
      } catch (error) {
        cause = error as Error;
      }
    }
    throw new RunError(
      `the solver's endpoint ${this.#settings.endpoint} answered none of ${questions} questions: ` +
        `${cause.message}; see to its server, and run again to go on`,
      { cause },
    );
  }

  /** The longest wait that is on, and how many attempts came without an answer; undefined where there is nothing to tell. */
  #noteOf({ backOff, meter }: Work): string | undefined {
    const [last] = [this.#endpoint.pause, ...backOff.waits].toSorted((a, b) => b.until - a.until);
    const left = last!.until - performance.now();
    const notes = [
      ...(left > 0 ? [`waiting ${Math.ceil(left / 1000)} s: ${last!.why}`] : []),
      ...unansweredNotes(meter.total),
    ];
    return notes.length > 0 ? notes.join('; ') : undefined;
  }
}

function missingPlaces({ question, places }: Strand): number[] {
  return places.filter((place) => question.attempts[place] === undefined);
}
