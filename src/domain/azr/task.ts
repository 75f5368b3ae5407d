/** Code tasks, in Absolute Zero's fields, and the interface that each task type implements. */
import type { CallResult, Limits, Sandbox } from '../../sandbox/sandbox.js';
import type { Verdict } from '../domain.js';
import type { BlockName, Notation } from './notation.js';
import type { CodeDomainSettings } from './settings.js';

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

/** How a domain writes its tasks down. */
export interface Writing {
  readonly notation: Notation;
  readonly settings: CodeDomainSettings;
}

/** Why a task is invalid. */
export interface Fault {
  readonly outcome: string;
  readonly detail: string;
}

/** A task with what the sandbox computed, or why there is none. */
export type Settled<Task> =
  | { readonly task: Task; readonly fault: null }
  | { readonly task: null; readonly fault: Fault };

/** Where answers run that must be run, and for how long. */
export interface Grader {
  readonly sandbox: Sandbox;
  readonly limits: Partial<Limits>;
}

/** What differs between types of task; how a task is written down comes from its notation. */
export interface TaskType<Task extends CodeTask> {
  readonly name: Task['type'];
  /** What an answer is, and so the block in which a fenced one stands. */
  readonly answer: BlockName;
  prompt(writing: Writing, seed: number): string;
  parse(writing: Writing, completion: string): Task | null;
  /** A checked task as a generator would write it, and the right answer to it. */
  written(notation: Notation, task: Task): string;
  rightAnswer(task: Task): string;
  /** The task as it was proposed: seeds its random inputs, and tells a proposal that was made before. */
  proposal(notation: Notation, task: Task): string;
  /** The calls by which a task is checked, all in one run of its program, its own first; null when an input is not a list of literals. */
  calls(task: Task, proposal: string, writing: Writing): readonly string[] | null;
  /** @param results one a call, in order */
  settle(task: Task, calls: readonly string[], results: readonly CallResult[], writing: Writing): Settled<Task>;
  /** Of a checked task, as is `question`. */
  render(notation: Notation, task: Task): string;
  question(notation: Notation, task: Task): string;
  /**
   * Whether one answer to a checked task is right. The expected output never enters the sandbox.
   * @throws {RunError} when the sandbox keeps failing
   */
  grade(task: Task, answer: string, grader: Grader): Promise<Verdict>;
}
