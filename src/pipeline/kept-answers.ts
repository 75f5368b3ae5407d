/** What an endpoint has answered of a batch that is not committed yet: kept in the run's store as it comes, so that no answer is paid for twice. */
import { createHash } from 'node:crypto';
import type { AnswerKeeper, KeptResponse } from '../solver/solver.js';
import { sumUsage, type SolverUsage } from '../solver/usage.js';
import type { BatchKey, Json } from '../store/rows.js';
import type { RunStore } from '../store/store.js';
import { answerSettings } from './solver-config.js';
import type { SolverConfig } from './solver-config.js';

/** What a batch asks: all that its answers follow from but the solver. */
export interface AskedBatch {
  readonly key: BatchKey;
  readonly questions: readonly string[];
  readonly k: number;
  readonly seed: number;
}

export class KeptAnswers {
  /** Of the responses that an earlier process has kept. */
  readonly usage: SolverUsage;
  readonly #store: RunStore;
  readonly #key: BatchKey;
  /** One a question: what it is kept under, and what is kept. */
  readonly #questions: readonly { readonly name: string; readonly responses: KeptResponse[] }[];

  constructor(store: RunStore, solver: SolverConfig, { key, questions, k, seed }: AskedBatch) {
    this.#store = store;
    this.#key = key;
    const kept = new Map<string, KeptResponse[]>();
    for (const { question, response } of store.keptAnswers(key)) {
      kept.set(question, [...(kept.get(question) ?? []), response as unknown as KeptResponse]);
    }
    const settings = answerSettings(solver);
    this.#questions = questions.map((question, place) => {
      // The same question at another place is another draw.
      const asked = JSON.stringify([question, place, k, seed, settings]);
      const name = createHash('sha256').update(asked).digest('hex');
      return { name, responses: kept.get(name) ?? [] };
    });
    this.usage = sumUsage(this.#questions.flatMap(({ responses }) => responses.map(({ usage }) => usage)));
  }

  /** For a call that asks some of the questions. */
  keeperOf(places: readonly number[]): AnswerKeeper {
    const of = (question: number) => this.#questions[places[question]!]!;
    return {
      kept: (question) => of(question).responses,
      keep: (question, response) => {
        const { name, responses } = of(question);
        const row = { question: name, ordinal: responses.length, response: response as unknown as Json };
        this.#store.keepAnswer({ ...this.#key, ...row });
        responses.push(response);
      },
    };
  }
}
