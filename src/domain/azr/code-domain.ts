/** The code domain: short Python programs, checked by a sandbox and graded on the host. */
import type { Domain } from '../domain.js';
import { USUAL_SPECIAL_TOKENS } from '../special-tokens.js';
import { codeF } from './code-f.js';
import { codeI } from './code-i.js';
import { codeO } from './code-o.js';
import { doctest } from './doctest.js';
import { fenced } from './fenced.js';
import { gradeEach } from './grading.js';
import { idleEdits } from './idle-edits.js';
import type { CodeDomainSettings } from './settings.js';
import type { CodeTask, TaskType } from './task.js';
import type { TopicRules } from './topics.js';
import { checkValidity } from './validity.js';

const TYPE_OF: ReadonlyMap<string, TaskType<CodeTask>> = new Map(
  [codeO, codeI, codeF].map((type: TaskType<CodeTask>) => [type.name, type]),
);

export function taskType(name: string): TaskType<CodeTask> {
  const type = TYPE_OF.get(name);
  if (type === undefined)
    throw new Error(`${name} is no type of code task; there are ${[...TYPE_OF.keys()].join(', ')}`);
  return type;
}

/** A domain writes tasks of the types in its settings; what is done with a task follows from the task's own type. */
export function createCodeDomain(settings: CodeDomainSettings, topics: TopicRules): Domain<CodeTask> {
  const notation = settings.notation === 'fenced' ? fenced : doctest;
  const rules = { notation, settings, topics, typeOf: taskType };
  return {
    name: settings.name,
    kinds: settings.types,
    asksInChat: notation.needsInstructions,
    taskEnd: notation.taskEnd,
    answerEnd: notation.answerEnd,
    prompt: (kind, seed) => taskType(kind).prompt(rules, seed),
    parse: (kind, completion) => taskType(kind).parse(rules, completion),
    check: (tasks, sandbox, options) => checkValidity(tasks, sandbox, rules, options?.earlier ?? null),
    render: (task) => taskType(task.type).render(notation, task),
    question: (task) => taskType(task.type).question(notation, task),
    idleEdits: (task, count, seed) =>
      idleEdits(task.snippet, count, seed).map(({ kind, source }) => ({ kind, task: { ...task, snippet: source } })),
    writeTask: (task) => taskType(task.type).written(notation, task),
    writeAnswer(task) {
      const type = taskType(task.type);
      return notation.writeAnswer(type.rightAnswer(task), type.answer);
    },
    async grade(task, texts, sandbox) {
      const type = taskType(task.type);
      const grader = { sandbox, limits: settings.limits };
      const answers = texts.map((text) => notation.readAnswer(USUAL_SPECIAL_TOKENS.withoutEnds(text), type.answer));
      return gradeEach(answers, grader, (answer) => type.grade(task, answer, grader), 'fail');
    },
  };
}
