/** Code tasks, in Absolute Zero's fields, and the interface that each task type implements. */
import type { Sandbox } from '../../sandbox/sandbox.js';
import type { Verdict } from '../domain.js';
import type { Notation } from './notation.js';

/** The task types that a domain can write. */
export const TASK_TYPES = ['code_o'] as const;

/** A program and one call of it: predict the output (code_o), or give an input that leads to it (code_i). Values are Python source. */
export interface CallTask {
  readonly type: 'code_o' | 'code_i';
  /** Python source that defines a function `f`. */
  readonly snippet: string;
  /** The text between the brackets of `f(…)`: literals only. */
  readonly input: string;
  /** `repr(f(input))`, which only the sandbox fills in; null until the task is checked. */
  readonly output: string | null;
}

/** Calls of a program and what they return: write the function (code_f). */
export interface InductionTask {
  readonly type: 'code_f';
  readonly snippet: string;
  /** The first `shown` are shown with their outputs, the rest judge an answer. */
  readonly inputs: readonly string[];
  /** One an input, which only the sandbox fills in; null until the task is checked. */
  readonly outputs: readonly string[] | null;
  /** What the generator says of the function; empty where it says nothing. */
  readonly message: string;
  readonly shown: number;
}

export type CodeTask = CallTask | InductionTask;

/** What the sandbox computed, as one text: a repr, for several calls a JSON list of them; null until the task is checked. */
export function computedOutput(task: CodeTask): string | null {
  if (task.type !== 'code_f') return task.output;
  return task.outputs && JSON.stringify(task.outputs);
}

/** What differs between kinds of task; how a task is written down comes from its notation. */
export interface TaskType<Task extends CodeTask> {
  readonly name: Task['type'];
  /** @param examples how many example tasks to show, drawn by `seed` */
  prompt(notation: Notation, seed: number, examples: number): string;
  parse(notation: Notation, completion: string): Task | null;
  render(notation: Notation, task: Task): string;
  question(notation: Notation, task: Task): string;
  grade(notation: Notation, task: Task, answers: readonly string[], sandbox: Sandbox): Promise<Verdict[]>;
}
