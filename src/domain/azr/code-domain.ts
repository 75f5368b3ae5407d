/** The code domain: short Python programs, checked by a sandbox and graded on the host. */
import type { Domain } from '../domain.js';
import { codeO } from './code-o.js';
import { notationOf } from './notation.js';
import type { CodeDomainSettings } from './settings.js';
import type { CodeTask, TaskType, TaskTypeName } from './task.js';
import { checkValidity } from './validity.js';

const TASK_TYPE: Readonly<Record<TaskTypeName, TaskType>> = { code_o: codeO };

/** A domain writes tasks of one type; a run of several types holds a domain for each. */
export function createCodeDomain(settings: CodeDomainSettings): Domain<CodeTask> {
  const type = TASK_TYPE[settings.type];
  const notation = notationOf(settings.notation);
  const render = (task: CodeTask): string => type.render(notation, task);
  const rules = { settings: settings.validity, limits: settings.limits, text: render };
  return {
    name: settings.type,
    prompt: (seed) => type.prompt(notation, seed, settings.examples),
    parse: (completion) => type.parse(notation, completion),
    check: (tasks, sandbox, options) => checkValidity(tasks, sandbox, rules, options?.earlier ?? null),
    render,
    question: (task) => type.question(notation, task),
    grade: (task, answers, sandbox) => type.grade(notation, task, answers, sandbox),
  };
}
