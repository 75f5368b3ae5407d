/** The Domain interface: how tasks are written, checked, rendered for the probe, put to a solver and graded. */
import type { Sandbox, SyntaxFacts } from '../sandbox/sandbox.js';
import type { TextEnd } from '../text-end.js';

/** Why a completion is not a valid task; `ok` when it is. */
export interface Check<Task> {
  readonly valid: boolean;
  /** `ok`, a sandbox outcome, or one of the domain's own reasons (`unparsable`, `guessable`, `unused_parameter`, …). */
  readonly outcome: string;
  /** What happened, for people; empty when valid. */
  readonly detail: string;
  /** The task with its answer filled in by the sandbox; null unless valid. */
  readonly task: Task | null;
  /** What the task is about; `unparsable` for what has no syntax tree. */
  readonly topic: string;
  readonly facts: SyntaxFacts | null;
}

export interface CheckOptions {
  /**
   * `render` of the earlier tasks of the same run, when repeats are to be rejected: a task among them, or a second one in the
   * batch, is a `repeat`. Without it repeats are not looked for. A resumed run gives the texts of the rows it kept.
   */
  readonly earlier?: ReadonlySet<string>;
}

export interface IdleEdit<Task> {
  readonly kind: string;
  readonly task: Task;
}

export type Verdict = 'pass' | 'fail';

export interface Domain<Task> {
  readonly name: string;
  /**
   * Kinds of task that it writes, at least one. A batch deals its items out evenly over them, a kind's items adjacent, in this
   * order; the items of a kind share one prompt, and are one group for the advantage.
   */
  readonly kinds: readonly string[];
  /** Whether prompts and questions are said to a model, in a turn of its chat where it has one; else they are texts that it goes on writing. */
  readonly asksInChat: boolean;
  /** Where a task ends that is being written, and an answer; null: where its writer says so. */
  readonly taskEnd: TextEnd | null;
  readonly answerEnd: TextEnd | null;
  /** What the generator is asked for a task of that kind; seeded, so that prompts with examples can vary. */
  prompt(kind: string, seed: number): string;
  /** A completion's task, without its answer; null when it is not one of that kind. */
  parse(kind: string, completion: string): Task | null;
  /**
   * Validity 𝒲 of parsed completions (null: unparsable), in batches; one result a task, in order.
   * @throws {RunError} when the sandbox keeps failing: no task is ever invalid for that.
   */
  check(tasks: readonly (Task | null)[], sandbox: Sandbox, options?: CheckOptions): Promise<Check<Task>[]>;
  /** The one text of a checked task that reference model and probe read: what the solver sees, without instructions. Never the answer. */
  render(task: Task): string;
  /** What the solver is asked of a checked task. Never the answer. */
  question(task: Task): string;
  /**
   * Up to `count` versions of a checked task that change its text alone, each of some kind, by its name, and to be checked: what a generator
   * could write to please a probe without another task. Whether the answer stayed is told by the check.
   */
  idleEdits(task: Task, count: number, seed: number): readonly IdleEdit<Task>[];
  /** A checked task as a generator would write it, and the right answer as a solver would: what models are taught by. */
  writeTask(task: Task): string;
  writeAnswer(task: Task): string;
  /**
   * Grades a solver's answer texts to one checked task, in order. Some kinds of task run the answers in the sandbox; the
   * expected output never goes there.
   * @throws {RunError} when the sandbox keeps failing: no answer is ever wrong for that.
   */
  grade(task: Task, answers: readonly string[], sandbox: Sandbox): Promise<Verdict[]>;
}
