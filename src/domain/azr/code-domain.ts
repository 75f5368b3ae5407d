/** The code domain: short Python programs, checked by a sandbox and graded on the host. */
import type { Domain } from '../domain.js';
import { codeO } from './code-o.js';
import { notationOf } from './notation.js';
import type { CodeDomainSettings } from './settings.js';
import { TASK_TYPES, type CodeTask, type TaskType } from './task.js';
import type { TopicRules } from './topics.js';
import { checkValidity } from './validity.js';

const TYPE_OF: ReadonlyMap<string, TaskType<CodeTask>> = new Map([codeO].map((type) => [type.name, type]));

function taskType(name: string): TaskType<CodeTask> {
  const type = TYPE_OF.get(name);
  if (type === undefined) throw new Error(`${name} is no type of code task; there are ${TASK_TYPES.join(', ')}`);
  return type;
}

/** A domain writes tasks of the types in its settings; what is done with a task follows from the task's own type. */
export function createCodeDomain(settings: CodeDomainSettings, topics: TopicRules): Domain<CodeTask> {
  const notation = notationOf(settings.notation);
  const render = (task: CodeTask): string => taskType(task.type).render(notation, task);
  const rules = { settings: settings.validity, limits: settings.limits, topics, text: render };
  return {
    name: settings.name,
    kinds: settings.types,
    prompt: (kind, seed) => taskType(kind).prompt(notation, seed, settings.examples),
    parse: (kind, completion) => taskType(kind).parse(notation, completion),
    check: (tasks, sandbox, options) => checkValidity(tasks, sandbox, rules, options?.earlier ?? null),
    render,
    question: (task) => taskType(task.type).question(notation, task),
    grade: (task, answers, sandbox) => taskType(task.type).grade(notation, task, answers, sandbox),
  };
}
