/** An endpoint as it is asked: its client, the form of its requests as far as it takes them, and what it says to the shortest question. */
import { UserError } from '../errors.js';
import { BackOff, Vigil, type Patience } from './back-off.js';
import { NoCompletion, readChatResponse, type ChatResponse, type ChatSettings } from './chat-protocol.js';
import {
  EndpointClient,
  RefusedRequest,
  TransientFault,
  type EndpointSettings,
  type ServedModel,
  type Wait,
} from './endpoint-client.js';
import { settingToChange } from './refused-settings.js';
import { RequestForm, type Asking, type PromptOf } from './request-form.js';
import { UsageMeter } from './usage.js';

/** A question that every model has room for. */
export const SHORTEST_QUESTION = '1';
/** For a few tokens, but no fewer than any server takes. */
const TRIAL: Asking = { question: SHORTEST_QUESTION, n: 1, seed: 0, maxNewTokens: 16 };

type Settings = EndpointSettings & ChatSettings & { readonly waitSeconds: number };

export class Endpoint {
  /** What it says of the model. */
  readonly served: ServedModel;
  readonly #client: EndpointClient;
  readonly #form: RequestForm;
  readonly #settings: Settings;
  readonly #patience: Patience;
  readonly #tell: (message: string) => void;

  private constructor(
    parts: { readonly client: EndpointClient; readonly form: RequestForm; readonly served: ServedModel },
    settings: Settings,
    patience: Patience,
    tell: (message: string) => void,
  ) {
    this.#client = parts.client;
    this.#form = parts.form;
    this.served = parts.served;
    this.#settings = settings;
    this.#patience = patience;
    this.#tell = tell;
  }

  /** @throws UserError when it cannot be reached, refuses the key or does not serve the model */
  static async open(
    settings: Settings,
    promptOf: PromptOf,
    patience: Patience,
    tell: (message: string) => void,
  ): Promise<Endpoint> {
    const client = new EndpointClient(settings);
    const form = new RequestForm(settings, promptOf);
    try {
      const probe = form.request(TRIAL);
      const served = await client.check(patience.checkSeconds, probe, settings.maxNewTokens);
      return new Endpoint({ client, form, served }, settings, patience, tell);
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** No request starts before its end. */
  get pause(): Wait {
    return this.#client.pause;
  }

  /** Fields of plain sampling that it refuses, so that its own defaults hold. */
  get refusedSampling(): string[] {
    return this.#form.refused;
  }

  /** Whether a question can be asked: no part of it would be read as anything but its text. */
  takes(question: string): boolean {
    return this.#form.takes(question);
  }

  /** What makes sampling plain is left out where the server does not take it. @throws as `EndpointClient.complete` */
  async complete(asking: Asking, signal: AbortSignal): Promise<ChatResponse> {
    for (;;) {
      let text: string;
      try {
        text = await this.#client.complete(this.#form.request(asking), signal);
      } catch (error) {
        const field = error instanceof RefusedRequest ? this.#form.leaveOut(error) : null;
        if (field === null) throw error;
        this.#tell(`${field} is refused, and left out: sampling is plain only as far as its default is`);
        continue;
      }
      try {
        return readChatResponse(text, asking.n);
      } catch (cause) {
        throw cause instanceof NoCompletion ? new TransientFault(cause.message, { cause }) : cause;
      }
    }
  }

  /** Ask the shortest question, for a few tokens. @throws as `complete` */
  async probe(meter: UsageMeter, signal: AbortSignal): Promise<void> {
    meter.add({ requests: 1 });
    meter.add((await this.complete(TRIAL, signal)).usage);
  }

  /**
   * Ask the shortest question before any work: what every request would be refused for is told then. A server that is starting is waited for.
   * @throws UserError when it is for the settings, RunError when the endpoint does not answer in time
   */
  async prove(): Promise<void> {
    const { signal } = new AbortController();
    const meter = new UsageMeter();
    const vigil = new Vigil(this.#settings, new BackOff(this.#patience, signal), () => this.probe(meter, signal));
    for (;;) {
      try {
        return await this.probe(meter, signal);
      } catch (error) {
        if (error instanceof RefusedRequest) throw this.#refusal(error);
        if (!(error instanceof TransientFault)) throw error;
        await vigil.untilAlive();
      }
    }
  }

  /** What to change, where the shortest question is refused. */
  #refusal(refusal: RefusedRequest): UserError {
    const { endpoint } = this.#settings;
    const setting = settingToChange(this.#settings, 1, refusal.status, refusal.said);
    return new UserError(
      `${setting ?? 'solver.endpoint: see to its server'} (${endpoint} refuses every request, ${refusal.message})`,
      { cause: refusal },
    );
  }
}
