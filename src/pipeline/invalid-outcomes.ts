/** What a generator wrote that is no valid task: the outcomes that came up most, an example of each, and what to try. */
import { count, percent } from '../report/format.js';
import type { TaskRow } from '../store/rows.js';

/** Outcomes told with an example. */
const TOLD = 3;
/** Characters of an example and of a detail. */
const EXAMPLE = 160;
const DETAIL = 100;

type Written = Pick<TaskRow, 'valid' | 'outcome' | 'detail' | 'completion'>;

/** Outcome → what a user can change. Sandbox outcomes that only the program is to blame for have no entry. */
const ADVICE: Readonly<Record<string, string>> = {
  cut_off:
    'completions do not end in time: raise policy.maxNewTokens, name in policy.stops what ends one, and see that the model was trained to end its turn',
  unparsable:
    'the text is no task in this notation: see domain.notation, policy.chat and domain.examples; a model that has never written such tasks needs to be fine-tuned on some first',
  syntax_error: 'the programs do not parse: lower policy.temperature, or take a model that knows more Python',
  forbidden:
    'the settings forbid it: see allowedImports, allowedCalls, forbiddenSyntax and onlyFunction of domain.validity',
  unused_parameter: 'see domain.validity.everyParameterUsed',
  runtime_error:
    'the programs fail on their own inputs: lower policy.temperature, or take a model that knows more Python',
  timeout: 'raise domain.limits.timeoutMs',
  memory: 'raise domain.limits.memoryMiB',
  nondeterministic: 'the programs depend on chance, the clock or the order of sets, and cannot be graded',
  none_result: 'see domain.validity.noneResult',
  not_literal: 'the outputs are no plain data, and answers to them cannot be graded',
  too_long: 'raise domain.validity.maxReprLength or maxQuestionLength, or take a models.reference that reads more',
  too_few_inputs: 'lower domain.induction.inputs',
  guessable: 'outputs hardly differ: see domain.validity.distinctOutputs',
  repeat: 'it writes the same tasks again: raise policy.temperature, or ask for fewer with label.tasks',
};

/** Outcomes of what is not valid, most frequent first, equals by name. */
function outcomesOf(rows: readonly Written[]): { readonly outcome: string; readonly rows: readonly Written[] }[] {
  const byOutcome = new Map<string, Written[]>();
  for (const row of rows) {
    if (row.valid) continue;
    const own = byOutcome.get(row.outcome);
    if (own) own.push(row);
    else byOutcome.set(row.outcome, [row]);
  }
  return [...byOutcome]
    .map(([outcome, own]) => ({ outcome, rows: own }))
    .toSorted((a, b) => b.rows.length - a.rows.length || (a.outcome < b.outcome ? -1 : 1));
}

/** `40 unparsable, 8 cut off`; empty when all is valid. */
export function outcomesInWords(rows: readonly Written[]): string {
  return outcomesOf(rows)
    .map(({ outcome, rows: own }) => `${count(own.length)} ${words(outcome)}`)
    .join(', ');
}

/** The most frequent outcomes, a few lines each: how often, the first example of it, what to try. */
export function describeOutcomes(rows: readonly Written[]): string[] {
  return outcomesOf(rows)
    .slice(0, TOLD)
    .flatMap(({ outcome, rows: own }) => {
      const { detail, completion } = own[0]!;
      const advice = ADVICE[outcome];
      return [
        `  ${count(own.length)} of ${count(rows.length)} (${percent(own.length / rows.length, 0)}) ${words(outcome)}, as: ${shortened(detail, DETAIL)}`,
        `      wrote  ${shortened(JSON.stringify(completion), EXAMPLE)}`,
        ...(advice === undefined ? [] : [`      try    ${advice}`]),
      ];
    });
}

const words = (outcome: string): string => outcome.replaceAll('_', ' ');

/** On one line, cut where it is too long. A model's text goes to a terminal: nothing of it may steer that. */
function shortened(text: string, length: number): string {
  const characters = Array.from(text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim());
  return characters.length <= length ? characters.join('') : `${characters.slice(0, length).join('')} …`;
}
