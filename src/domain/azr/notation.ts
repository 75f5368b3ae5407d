/** What a notation must do: how code tasks and answers are written down. */

import type { TextEnd } from '../../text-end.js';

/** A program and the text between the brackets of its call. */
export interface ProgramAndInput {
  readonly snippet: string;
  readonly input: string;
}

/** A program and what it returned on an input that is not shown. */
export interface ProgramAndOutput {
  readonly snippet: string;
  readonly output: string;
}

/** A program, inputs for it, and what its writer says of it; an empty message where nothing is said. */
export interface ProgramAndInputs {
  readonly snippet: string;
  readonly inputs: readonly string[];
  readonly message: string;
}

/** Inputs of a program that is not shown, with its outputs. */
export interface Examples {
  readonly pairs: readonly { readonly input: string; readonly output: string }[];
  readonly message: string;
}

/** The labels of fenced blocks. */
export type BlockName = 'python' | 'input' | 'output' | 'message';

export interface Notation {
  /** Where a task ends, and an answer; null where the model's own end of a turn is all there is. */
  readonly taskEnd: TextEnd | null;
  readonly answerEnd: TextEnd | null;
  /** Whether models must be told what to write, in a turn of chat where they have one; others go on writing a bare text. */
  readonly needsInstructions: boolean;
  /** What a generator that needs no instructions is given, for each type of task. */
  readonly opening: Readonly<Record<'code_o' | 'code_i' | 'code_f', string>>;
  /** Whether a task's further inputs are drawn at random, because its writer gives only one. */
  readonly drawsInputs: boolean;
  /** The program and input of a completion; null when either is missing or cut off. */
  readonly readProgramAndInput: (completion: string) => ProgramAndInput | null;
  readonly writeProgramAndInput: (task: ProgramAndInput) => string;
  readonly writeProgramAndOutput: (task: ProgramAndOutput) => string;
  /** The program, inputs and message of a completion; null when one that must be there is missing or cut off. */
  readonly readFunction: (completion: string) => ProgramAndInputs | null;
  readonly writeFunction: (task: ProgramAndInputs) => string;
  readonly writeExamples: (task: Examples) => string;
  /** An answer as a solver would write it. */
  readonly writeAnswer: (answer: string, kind: BlockName) => string;
  /** The answer in a solver's text; null when there is none. */
  readonly readAnswer: (text: string, kind: BlockName) => string | null;
}

/** `f(1, 2)` stands for its arguments `1, 2`. */
export function withoutCall(input: string): string {
  const call = /^\s*f\s*\(([^]*)\)\s*$/.exec(input);
  return call?.[1] ?? input;
}
