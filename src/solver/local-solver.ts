/** A solver that is a local language model, sampled at a temperature. */
import { CompletionEnd } from '../lm/completion-end.js';
import type { LanguageModel } from '../lm/language-model.js';
import type { ChatSetting } from '../lm/tokenizer.js';
import type { TextEnd } from '../text-end.js';
import type { DrawnAttempt, Solver } from './solver.js';

export interface LocalSolverSettings {
  readonly temperature: number;
  readonly maxNewTokens: number;
  /** Texts that end an answer. */
  readonly stops: readonly string[];
  /** Where the notation says that an answer is complete; null where it does not. */
  readonly end: TextEnd | null;
  /** Whether a question is a user's turn of the model's chat. */
  readonly chat: ChatSetting;
}

/** Questions whose attempts are sampled in one rollout. */
export const QUESTIONS_PER_ROLLOUT = 64;

/** An attempt at a question that leaves no room for an answer. */
const NO_ROOM: DrawnAttempt = { answer: '', status: 'cut_off', seed: null, draw: null };

/** So cold that the likeliest token is drawn, unless another is as likely to five digits. */
const GREEDY = 1e-5;

export function createLocalSolver(model: LanguageModel, settings: LocalSolverSettings): Solver {
  const { tokenizer, config } = model;
  const ending = new CompletionEnd(tokenizer, settings.stops, settings.end);
  const longest = config.maxPositions - settings.maxNewTokens;
  return {
    name: model.folder,
    // The model belongs to whoever opened it.
    close: async () => {},
    async attempt(questions, k, seed) {
      const prompts = questions.map((question) => tokenizer.question(question, settings.chat));
      // A question too long to be read with room for an answer is one that the solver fails at.
      const attempts = prompts.map(() => Array.from({ length: k }, () => NO_ROOM));
      const readable = prompts.flatMap(({ length }, i) => (length <= longest ? [i] : []));
      for (let at = 0; at < readable.length; at += QUESTIONS_PER_ROLLOUT) {
        const part = readable.slice(at, at + QUESTIONS_PER_ROLLOUT);
        const drawnBy = seed + at;
        const completions = await model.sample({
          prompts: part.map((i) => prompts[i]!),
          perPrompt: k,
          maxNewTokens: settings.maxNewTokens,
          temperature: Math.max(settings.temperature, GREEDY),
          ...ending.request,
          seed: drawnBy,
          adapter: null,
        });
        part.forEach((question, i) => {
          attempts[question] = completions.slice(i * k, (i + 1) * k).map(({ tokens, stopped }, j): DrawnAttempt => ({
            // As endpoints have it, without the line break that ends it.
            answer: ending.textOf(tokens).replace(/\n$/, ''),
            status: stopped ? 'answered' : 'cut_off',
            seed: drawnBy,
            draw: i * k + j,
          }));
        });
      }
      return attempts;
    },
  };
}
