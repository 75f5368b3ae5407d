/** Whether what is to be written fits into a model's positions: refused before a run, and told by its plan, in the same words. */
import type { Config } from './config.js';

/** A model by its name, and where its sequences end. */
export interface Positions {
  readonly name: string;
  readonly maxPositions: number;
}

/** Why what may be written does not fit beside its prompt, of at least one token; null when it does. */
export function writingRefusal(
  role: 'policy' | 'solver',
  maxNewTokens: number,
  promptTokens: number,
  { name, maxPositions }: Positions,
): string | null {
  if (maxNewTokens + promptTokens <= maxPositions) return null;
  const prompt = promptTokens > 1 ? `a prompt of ${promptTokens}` : 'a prompt';
  return `${role}.maxNewTokens: ${maxNewTokens} tokens and ${prompt} are more than the ${maxPositions} positions of ${name}; lower it`;
}

/**
 * Why an answer at its longest does not fit beside a code_o task, which is put to the solver as it was written; null when it does. How long
 * tasks of other types are, only their outputs tell: a question without room is one that the solver fails at, and so never in band.
 * @param around tokens of a question beside its task
 */
export function answerRefusal(
  { domain, policy, solver }: Pick<Config, 'domain' | 'policy' | 'solver'>,
  around: number,
  { name, maxPositions }: Positions,
): string | null {
  if (!domain.types.includes('code_o')) return null;
  // Characters: about as many tokens at the most.
  const characters = domain.validity.maxQuestionLength ?? Infinity;
  const [setting, longest] =
    characters < policy.maxNewTokens
      ? ['domain.validity.maxQuestionLength', characters]
      : ['policy.maxNewTokens', policy.maxNewTokens];
  const most = longest + solver.maxNewTokens;
  if (most + around <= maxPositions) return null;
  return `solver.maxNewTokens: a task of ${setting} ${longest} and ${solver.maxNewTokens} more are ${most} tokens, ${name} has ${maxPositions} positions; lower either`;
}
