/**
 * Programs without what costs a writer nothing and does nothing: comments, blank lines, docstrings and other idle statements, wide blanks
 * and indents. Neither the solver nor the probe reads any of it, so that none of it can be paid for, or tell the answer. A program
 * without such things stays as it is, to the character.
 */
import { pythonPieces, type Piece } from './python-pieces.js';
import type { CodeTask } from './task.js';

/** Columns that a block may be indented by, and a line within brackets; wider ones are taken in. */
const WIDEST_STEP = 8;
const WIDEST_WITHIN = 24;
const USUAL_STEP = 4;
const TAB = 8;

/** A logical line: one that may go over several, within brackets. */
interface Line {
  readonly indent: string;
  readonly statements: readonly Statement[];
}

interface Statement {
  readonly text: string;
  /** A constant, `"a docstring"`, or `pass`. */
  readonly isIdle: boolean;
}

/** What Python would refuse stays as it is. */
export function plainProgram(source: string): string {
  const pieces = pythonPieces(source);
  const lines = pieces && withoutIdle(logicalLines(pieces));
  return lines?.length ? writeLines(lines) : source;
}

/** The text between a call's brackets. */
function plainArguments(source: string): string {
  const pieces = pythonPieces(source, true);
  return pieces === null ? source : textOf(pieces);
}

export function plainTask<Task extends CodeTask>(task: Task): Task {
  const snippet = plainProgram(task.snippet);
  if (task.type === 'code_f') return { ...task, snippet, inputs: task.inputs.map(plainArguments) };
  return { ...task, snippet, input: plainArguments(task.input) };
}

function logicalLines(pieces: readonly Piece[]): Line[] {
  const lines: Line[] = [];
  let from = 0;
  for (let at = 0; at <= pieces.length; at++) {
    const piece = pieces[at];
    if (piece !== undefined && (piece.kind !== 'break' || piece.isWithin)) continue;
    const line = pieces.slice(from, at);
    from = at + 1;
    const first = line[0];
    const indent = first?.kind === 'blank' ? first.text.replaceAll(/[^ \t]/g, '') : '';
    const statements = statementsOf(line);
    if (statements.length > 0) lines.push({ indent, statements });
  }
  return lines;
}

function statementsOf(line: readonly Piece[]): Statement[] {
  const statements: Statement[] = [];
  let from = 0;
  for (let at = 0; at <= line.length; at++) {
    const piece = line[at];
    if (piece !== undefined && (piece.text !== ';' || piece.isWithin)) continue;
    const part = line.slice(from, at);
    from = at + 1;
    const text = textOf(part);
    if (text !== '') statements.push({ text, isIdle: isIdle(part) });
  }
  return statements;
}

const IDLE = /^(?:pass|(?<opening>\(*)(?:(?:"" ?)+|\d+(?:\.\d+)?|\.\.\.|True|False|None)(?<closing>\)*))$/;

function isIdle(part: readonly Piece[]): boolean {
  let outline = '';
  for (const { kind, text } of part) {
    if (kind === 'code') outline += text;
    if (kind === 'blank' || kind === 'break') outline += ' ';
    // One with fields does what stands in them.
    if (kind === 'string') outline += /^\w*f/i.test(text) && text.includes('{') ? 'f' : '""';
  }
  const groups = IDLE.exec(outline.trim())?.groups;
  return groups !== undefined && (groups['opening'] ?? '').length === (groups['closing'] ?? '').length;
}

/** Without comments, and with what else stands between its words as one blank, or one line break. */
function textOf(pieces: readonly Piece[]): string {
  const parts: string[] = [];
  let between = '';
  for (const { kind, text } of pieces) {
    if (kind === 'break') between = '\n';
    else if (kind === 'blank')
      between =
        between === '' ? ' ' : between === ' ' ? ' ' : `\n${text.replaceAll(/[^ \t]/g, '').slice(0, WIDEST_WITHIN)}`;
    else if (kind !== 'comment') {
      if (parts.length > 0) parts.push(between);
      parts.push(text);
      between = '';
    }
  }
  return parts.join('');
}

interface Block {
  readonly column: number;
  hasStatements: boolean;
}

/** A statement stays where its block would be left without any. */
function withoutIdle(lines: readonly Line[]): Line[] {
  const kept: Line[] = [];
  const blocks: Block[] = [{ column: 0, hasStatements: false }];
  for (const [i, { indent, statements }] of lines.entries()) {
    const column = columnOf(indent);
    while (blocks.length > 1 && blocks.at(-1)!.column > column) blocks.pop();
    if (blocks.at(-1)!.column < column) blocks.push({ column, hasStatements: false });
    const block = blocks.at(-1)!;
    const next = lines[i + 1];
    const hasOthers = block.hasStatements || (next !== undefined && columnOf(next.indent) === column);
    const busy = statements.filter((statement) => !statement.isIdle);
    const rest = busy.length > 0 || hasOthers ? busy : statements.slice(0, 1);
    if (rest.length === 0) continue;
    block.hasStatements = true;
    kept.push({ indent, statements: rest });
  }
  return kept;
}

function writeLines(lines: readonly Line[]): string {
  const columns = [0];
  const levels: number[] = [];
  let widest = 0;
  for (const { indent } of lines) {
    const column = columnOf(indent);
    while (columns.length > 1 && columns.at(-1)! > column) columns.pop();
    widest = Math.max(widest, column - columns.at(-1)!);
    if (columns.at(-1)! < column) columns.push(column);
    levels.push(columns.length - 1);
  }
  return lines
    .map(({ indent, statements }, i) => {
      const before = widest > WIDEST_STEP ? ' '.repeat(USUAL_STEP * levels[i]!) : indent;
      return before + statements.map(({ text }) => text).join('; ');
    })
    .join('\n');
}

function columnOf(indent: string): number {
  let column = 0;
  for (const character of indent) column = character === '\t' ? TAB * (Math.floor(column / TAB) + 1) : column + 1;
  return column;
}
