/** How questions are put to a solver behind an endpoint: in the words, or the token ids, that a local solver would get. */
import { SpecialTokens } from '../domain/special-tokens.js';
import type { Domain } from '../domain/domain.js';
import { Tokenizer } from '../lm/tokenizer.js';
import type { PromptOf } from '../solver/request-form.js';
import { chatOf } from './chat.js';
import { findModel } from './models.js';
import type { SolverConfig } from './solver-config.js';
import { UserError } from '../errors.js';

/** @throws UserError when the tokenizer cannot be read, or a bare text would need a system message */
export async function endpointPrompt(
  solver: SolverConfig,
  domain: Pick<Domain<never>, 'asksInChat'>,
): Promise<PromptOf> {
  const chat = chatOf(solver, domain);
  if (solver.tokenizer !== null) {
    const tokenizer = await Tokenizer.open(findModel(solver.tokenizer, 'solver.tokenizer'));
    const { ends } = tokenizer;
    return (question) => ({ ids: tokenizer.question(question, chat), ends });
  }
  if (chat === 'never' && solver.system !== '') {
    throw new UserError(
      'solver.system: questions of this notation go as bare texts, without a system message; leave it empty, or set solver.chat: always',
    );
  }
  // The server reads special tokens in any text: whoever writes one into a task could end the question, or the answer.
  return (question) => {
    if (SpecialTokens.isIn(question)) return null;
    return chat === 'never' ? { text: question } : { turn: question };
  };
}
