/**
 * Validity 𝒲 of code tasks. A task has the first of these outcomes that applies:
 *
 * - `unparsable`: not a program and an input, or the input is not a list of literals
 * - `syntax_error`: the program does not parse
 * - `forbidden`: imports, syntax, calls, attributes or constants that the settings do not allow
 * - `unused_parameter`: a parameter of f is never read
 * - the sandbox's outcome when the call fails: `runtime_error`, `timeout`, `memory`, `output_limit`, `nondeterministic`, `forbidden`
 * - `none_result`, `not_literal` (an answer could not be graded), `too_long`
 * - the sandbox's outcome when the program fails on a random input by anything but an exception
 * - `guessable`: too few distinct outputs on random inputs
 * - `repeat`: the run has written this task before
 * - `ok`
 *
 * A program whose interpreter had to be ended (`timeout`, `memory`) may have no syntax facts: its outcome is then the sandbox's.
 */
import { RunError } from '../../errors.js';
import type { CallResult, Limits, ProgramResult, Sandbox, SyntaxFacts } from '../../sandbox/sandbox.js';
import type { Check } from '../domain.js';
import { mapBounded } from './bounded.js';
import { tryParseArguments, tryParseLiteral } from './literal.js';
import { perturbedInputs } from './perturb.js';
import type { ValiditySettings } from './settings.js';
import type { CodeTask } from './task.js';
import { topicOf, UNPARSABLE, type TopicRules } from './topics.js';

/** Programs given to the sandbox at once, for each that it can run: the next one is there when a worker is free. */
const QUEUED_PER_WORKER = 2;

export interface ValidityRules {
  readonly settings: ValiditySettings;
  readonly limits: Partial<Limits>;
  readonly topics: TopicRules;
  /** The task's text, which seeds its random inputs and tells repeats. */
  readonly text: (task: CodeTask) => string;
}

/**
 * One result a task, in order. A pure function of the tasks, `earlier` and the rules, as far as the sandbox is one.
 * @param earlier texts of the run's earlier tasks; null: repeats are not looked for
 * @throws {RunError} when the sandbox fails
 */
export async function checkValidity(
  tasks: readonly (CodeTask | null)[],
  sandbox: Sandbox,
  rules: ValidityRules,
  earlier: ReadonlySet<string> | null,
): Promise<Check<CodeTask>[]> {
  const byText = new Map<string, CodeTask>();
  for (const task of tasks) if (task !== null) byText.set(rules.text(task), task);
  const distinct = [...byText];
  const checks = await mapBounded(distinct, sandbox.size * QUEUED_PER_WORKER, ([text, task]) =>
    checkOne(task, text, sandbox, rules),
  );
  const checkOf = new Map(distinct.map(([text], index) => [text, checks[index]]));

  const seen = new Set<string>();
  return tasks.map((task) => {
    const text = task === null ? null : rules.text(task);
    const check = text === null ? undefined : checkOf.get(text);
    if (text === null || check === undefined) return invalid('unparsable', 'not a program and an input');
    const repeated = rules.settings.rejectRepeats && earlier !== null && (earlier.has(text) || seen.has(text));
    seen.add(text);
    if (!check.valid || !repeated) return check;
    return { ...check, valid: false, outcome: 'repeat', detail: 'the run has written this task before', task: null };
  });
}

async function checkOne(
  task: CodeTask,
  text: string,
  sandbox: Sandbox,
  rules: ValidityRules,
): Promise<Check<CodeTask>> {
  const { settings, limits } = rules;
  if (task.type === 'code_f') return invalid('unparsable', 'no program with one call');
  const input = tryParseArguments(task.input);
  if (input === null) return invalid('unparsable', 'the input is not a list of literals');
  const guard = settings.distinctOutputs;
  const perturbed = guard === null ? [] : perturbedInputs(input, guard.of - 1, text, guard);

  const program = { code: task.snippet, calls: [task.input, ...perturbed] };
  const result = await sandbox.run(program, { limits, facts: true });
  const failure = result.calls.find(({ outcome }) => outcome === 'sandbox_failure');
  if (failure !== undefined) throw new RunError(`the ${sandbox.name} sandbox keeps failing: ${failure.detail}`);

  const topic = result.facts === null ? UNPARSABLE : topicOf(rules.topics, result.facts, task.input);
  const fault = findFault(result, settings);
  if (fault !== null) return { ...invalid(fault.outcome, fault.detail), topic, facts: result.facts };
  const output = result.calls[0]?.repr ?? null;
  return { valid: true, outcome: 'ok', detail: '', task: { ...task, output }, topic, facts: result.facts };
}

function invalid(outcome: string, detail: string): Check<CodeTask> {
  return { valid: false, outcome, detail, task: null, topic: UNPARSABLE, facts: null };
}

interface Fault {
  readonly outcome: string;
  readonly detail: string;
}

/** Why a run makes its task invalid; null when it does not. The first call is the task's own. */
function findFault({ facts, calls }: ProgramResult, settings: ValiditySettings): Fault | null {
  const [own, ...perturbed] = calls;
  if (own === undefined) return { outcome: 'unparsable', detail: 'no call' };
  if (own.outcome === 'syntax_error') return failedCall(own);
  return (
    (facts && forbiddenBy(facts, settings)) ??
    (facts && unusedParameter(facts, settings)) ??
    failedCall(own) ??
    badResult(own.repr ?? '', settings) ??
    perturbed.map(failedBeyondException).find((fault) => fault !== null) ??
    guessable(calls, settings)
  );
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
  return { outcome: 'unused_parameter', detail: `parameter ${unused} is never read` };
}

function failedCall({ outcome, detail }: CallResult): Fault | null {
  return outcome === 'ok' ? null : { outcome, detail };
}

/** An exception on a random input is an output like another (all exceptions count as one); a time-out or non-determinism is a fault of the program. */
function failedBeyondException(call: CallResult): Fault | null {
  const fault = call.outcome === 'runtime_error' ? null : failedCall(call);
  return fault && { ...fault, detail: `on a random input: ${fault.detail}` };
}

function badResult(repr: string, settings: ValiditySettings): Fault | null {
  if (repr === 'None' && settings.noneResult === 'reject') return { outcome: 'none_result', detail: 'f returned None' };
  if (tryParseLiteral(repr) === null)
    return { outcome: 'not_literal', detail: `the result is no literal: ${repr.slice(0, 80)}` };
  const length = Array.from(repr).length;
  return length <= settings.maxReprLength ? null : { outcome: 'too_long', detail: `a result of ${length} characters` };
}

function guessable(calls: readonly CallResult[], settings: ValiditySettings): Fault | null {
  if (settings.distinctOutputs === null) return null;
  const distinct = new Set(calls.map(({ repr }) => repr)).size;
  if (distinct >= settings.distinctOutputs.atLeast) return null;
  return { outcome: 'guessable', detail: `${distinct} distinct outputs on ${calls.length} inputs` };
}
