/**
 * Validity 𝒲 of code tasks, which are taken without comments and what else is idle. A task has the first of these outcomes that applies:
 *
 * - `unparsable`: not a program and its input or inputs, or an input is not a list of literals
 * - `syntax_error`: the program does not parse
 * - `forbidden`: imports, syntax, calls, attributes or constants that the settings do not allow
 * - `unused_parameter`: what f returns cannot depend on one of its parameters, which dead code may read all the same; a program that
 *   returns None is `none_result` where that is refused
 * - the sandbox's outcome when a call of the task's own fails: `runtime_error`, `timeout`, `memory`, `output_limit`,
 *   `nondeterministic`, `forbidden`; or of its result: `none_result`, `not_literal` (an answer could not be graded), `too_long`
 * - the sandbox's outcome when the program fails on a random input by anything but an exception
 * - `too_few_inputs` (code_f): repeats left out, the task has fewer inputs than it must
 * - `guessable`: too few distinct outputs, of code_f on its own inputs, else on random ones
 * - `telling_message` (code_f): the message holds code, or a hidden output
 * - `too_long`: the task as the solver sees it, or longer than the reference model reads, which the pipeline tells
 * - `repeat`: the run has written this task before
 * - `ok`
 *
 * A program whose interpreter had to be ended (`timeout`, `memory`) may have no syntax facts: its outcome is then the sandbox's.
 */
import { RunError } from '../../errors.js';
import type { ProgramResult, Sandbox, SyntaxFacts } from '../../sandbox/sandbox.js';
import type { Check } from '../domain.js';
import { mapBounded } from './bounded.js';
import { QUEUED_PER_WORKER } from './grading.js';
import { plainTask } from './plain-program.js';
import type { ValiditySettings } from './settings.js';
import type { CodeTask, Fault, Settled, TaskType, Writing } from './task.js';
import { topicOf, UNPARSABLE, type TopicRules } from './topics.js';

export interface ValidityRules extends Writing {
  readonly typeOf: (name: string) => TaskType<CodeTask>;
  readonly topics: TopicRules;
}

/**
 * One result a task, in order. A pure function of the tasks, `earlier` and the settings, as far as the sandbox is one.
 * @param earlier `render` of the run's earlier tasks; null: repeats are not looked for
 * @throws {RunError} when the sandbox fails
 */
export async function checkValidity(
  proposed: readonly (CodeTask | null)[],
  sandbox: Sandbox,
  rules: ValidityRules,
  earlier: ReadonlySet<string> | null,
): Promise<Check<CodeTask>[]> {
  const { notation, settings, typeOf } = rules;
  const tasks = proposed.map((task) => task && plainTask(task));
  const keys = tasks.map((task) => task && `${task.type}\n${typeOf(task.type).proposal(notation, task)}`);
  const distinct = new Map<string, CodeTask>();
  for (const [i, task] of tasks.entries()) if (task !== null) distinct.set(keys[i]!, task);
  const checked = await mapBounded(distinct, sandbox.size * QUEUED_PER_WORKER, async ([key, task]) => {
    return [key, await checkOne(task, sandbox, rules)] as const;
  });
  const checkOf = new Map(checked);

  const seen = new Set<string>();
  return keys.map((key) => {
    const check = key === null ? undefined : checkOf.get(key);
    if (check === undefined) return invalid('unparsable', 'not a program and its input');
    if (check.task === null || earlier === null || !settings.validity.rejectRepeats) return check;
    const text = typeOf(check.task.type).render(notation, check.task);
    const repeated = earlier.has(text) || seen.has(text);
    seen.add(text);
    if (!repeated) return check;
    return { ...check, valid: false, outcome: 'repeat', detail: 'the run has written this task before', task: null };
  });
}

async function checkOne(task: CodeTask, sandbox: Sandbox, rules: ValidityRules): Promise<Check<CodeTask>> {
  const { notation, settings } = rules;
  const type = rules.typeOf(task.type);
  const calls = type.calls(task, type.proposal(notation, task), rules);
  if (calls === null) return invalid('unparsable', 'an input is not a list of literals');

  const result = await sandbox.run({ code: task.snippet, calls }, { limits: settings.limits, facts: true });
  const failure = result.calls.find(({ outcome }) => outcome === 'sandbox_failure');
  if (failure !== undefined) throw new RunError(`the ${sandbox.name} sandbox keeps failing: ${failure.detail}`);

  const { facts } = result;
  const topic = facts === null ? UNPARSABLE : topicOf(rules.topics, facts, calls[0] ?? '');
  const settled = settle(task, type, calls, result, rules);
  if (settled.fault) return { ...invalid(settled.fault.outcome, settled.fault.detail), topic, facts };
  return { valid: true, outcome: 'ok', detail: '', task: settled.task, topic, facts };
}

function invalid(outcome: string, detail: string): Check<CodeTask> {
  return { valid: false, outcome, detail, task: null, topic: UNPARSABLE, facts: null };
}

function settle(
  task: CodeTask,
  type: TaskType<CodeTask>,
  calls: readonly string[],
  { facts, calls: results }: ProgramResult,
  writing: Writing,
): Settled<CodeTask> {
  const { validity } = writing.settings;
  const [own] = results;
  if (own?.outcome === 'syntax_error') return { task: null, fault: { outcome: own.outcome, detail: own.detail } };
  // What cannot be looked at is not let through because it ran.
  if (facts === null && own?.outcome === 'ok')
    return { task: null, fault: { outcome: 'syntax_error', detail: 'the syntax tree cannot be read' } };
  const returnsNone = own?.repr === 'None' && validity.noneResult === 'reject';
  const fault = facts && (forbiddenBy(facts, validity) ?? (returnsNone ? null : unusedParameter(facts, validity)));
  if (fault) return { task: null, fault };
  const settled = type.settle(task, calls, results, writing);
  if (settled.fault) return settled;
  const length = Array.from(type.render(writing.notation, settled.task)).length;
  if (length <= (validity.maxQuestionLength ?? Infinity)) return settled;
  return { task: null, fault: { outcome: 'too_long', detail: `a task of ${length} characters` } };
}

function forbiddenBy(facts: SyntaxFacts, settings: ValiditySettings): Fault | null {
  const fault = (detail: string): Fault => ({ outcome: 'forbidden', detail });
  const { allowedImports, allowedCalls, largestInteger } = settings;
  const [first, ...further] = facts.topLevel;
  const isOnlyF = first === 'FunctionDef' && further.length === 0 && facts.functions[0]?.name === 'f';
  if (settings.onlyFunction && !isOnlyF) return fault('the program is not the function f alone');

  const module = facts.imports.find((name) => allowedImports?.includes(name.split('.', 1)[0] ?? '') === false);
  if (module !== undefined) return fault(`import of ${module}`);
  const syntax = settings.forbiddenSyntax.find((node) => Object.hasOwn(facts.nodes, node));
  if (syntax !== undefined) return fault(`syntax: ${syntax}`);
  const attribute = facts.attributes.find((name) => name.startsWith('_'));
  if (settings.privateAttributes === 'forbid' && attribute !== undefined) return fault(`attribute ${attribute}`);
  if (largestInteger !== null && BigInt(facts.largestInteger) > BigInt(largestInteger)) return fault('a large integer');

  const own = new Set(facts.functions.map(({ name }) => name));
  const called = Object.keys(facts.calledNames).find(
    (name) => !own.has(name) && allowedCalls?.includes(name) === false,
  );
  return called === undefined ? null : fault(`call of ${called}`);
}

function unusedParameter(facts: SyntaxFacts, settings: ValiditySettings): Fault | null {
  const f = facts.functions.findLast(({ name }) => name === 'f');
  const unused = f?.parameters.find((parameter) => !f.used.includes(parameter));
  if (!settings.everyParameterUsed || unused === undefined) return null;
  return { outcome: 'unused_parameter', detail: `what f returns does not depend on parameter ${unused}` };
}
