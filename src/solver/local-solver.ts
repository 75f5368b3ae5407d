/** A solver that is a local language model, sampled at a temperature. */
import { UserError } from '../errors.js';
import type { LanguageModel } from '../lm/language-model.js';
import type { ChatSetting } from '../lm/tokenizer.js';
import type { Attempt, Solver } from './solver.js';

export interface LocalSolverSettings {
  readonly temperature: number;
  readonly maxNewTokens: number;
  /** Texts of one token each that end an answer. */
  readonly stops: readonly string[];
  /** Whether a question is a user's turn of the model's chat. */
  readonly chat: ChatSetting;
}

/** Questions whose attempts are sampled in one rollout. */
const QUESTIONS_PER_ROLLOUT = 64;

export function createLocalSolver(model: LanguageModel, settings: LocalSolverSettings): Solver {
  const { tokenizer, config } = model;
  const stops = [...new Set([...tokenizer.ends, ...settings.stops.map((text) => tokenizer.singleToken(text))])];
  const longest = config.maxPositions - settings.maxNewTokens;
  const encode = (question: string): number[] => {
    const tokens = tokenizer.question(question, settings.chat);
    if (tokens.length > longest) {
      throw new UserError(
        `a question of ${tokens.length} tokens leaves no room for ${settings.maxNewTokens} more in the solver's ${config.maxPositions} positions: lower solver.maxNewTokens or policy.maxNewTokens`,
      );
    }
    return tokens;
  };
  return {
    name: model.folder,
    // The model belongs to whoever opened it.
    close: async () => {},
    async attempt(questions, k, seed) {
      const attempts: Attempt[][] = [];
      for (let at = 0; at < questions.length; at += QUESTIONS_PER_ROLLOUT) {
        const part = questions.slice(at, at + QUESTIONS_PER_ROLLOUT);
        const completions = await model.sample({
          prompts: part.map(encode),
          perPrompt: k,
          maxNewTokens: settings.maxNewTokens,
          temperature: settings.temperature,
          stops,
          seed: seed + at,
          adapter: null,
        });
        part.forEach((_, i) => {
          const own = completions.slice(i * k, (i + 1) * k);
          attempts.push(
            own.map(({ tokens, stopped }) => ({
              answer: tokenizer.decode(tokens),
              status: stopped ? 'answered' : 'cut_off',
            })),
          );
        });
      }
      return attempts;
    },
  };
}
