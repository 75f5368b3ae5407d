/** A code task, in Absolute Zero's fields, and the interface that each task type implements. */
import type { Sandbox } from '../../sandbox/sandbox.js';
import type { Verdict } from '../domain.js';
import type { Notation } from './notation.js';

/** The task types there are; code_i (give the input) and code_f (write the function) are further files beside code-o.ts. */
export const TASK_TYPES = ['code_o'] as const;
export type TaskTypeName = (typeof TASK_TYPES)[number];

export interface CodeTask {
  readonly type: TaskTypeName;
  /** Python source that defines a function `f`. */
  readonly snippet: string;
  /** The text between the brackets of `f(…)`: literals only. */
  readonly input: string;
  /** `repr(f(input))`, which only the sandbox fills in; null until the task is checked. */
  readonly output: string | null;
}

/** What differs between kinds of task; how a task is written down comes from its notation. */
export interface TaskType {
  readonly name: TaskTypeName;
  /** @param examples how many example tasks to show, drawn by `seed` */
  prompt(notation: Notation, seed: number, examples: number): string;
  parse(notation: Notation, completion: string): CodeTask | null;
  render(notation: Notation, task: CodeTask): string;
  question(notation: Notation, task: CodeTask): string;
  grade(notation: Notation, task: CodeTask, answers: readonly string[], sandbox: Sandbox): Promise<Verdict[]>;
}
