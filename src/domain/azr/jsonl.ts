/** Reads JSON Lines row by row; every fault names the file, the line and what to do. */
import { createReadStream } from 'node:fs';
import { readingFault, UserError } from '../../errors.js';

export interface JsonLine {
  /** Counted from 1. */
  readonly line: number;
  readonly value: unknown;
}

/** Longest row, in UTF-16 units. */
const MAX_ROW = 64 << 20;

/**
 * The rows of a JSON Lines file in UTF-8; empty lines are passed over.
 * @throws {UserError} for a file that cannot be read, a line that is not JSON or too long, a last line that is cut off, a file without rows
 */
export async function* readJsonLines(path: string): AsyncGenerator<JsonLine> {
  let line = 0;
  let rows = 0;
  for await (const { text, ended } of readLines(path)) {
    line += 1;
    if (text.trim() === '') continue;
    rows += 1;
    yield { line, value: parseRow(path, line, text, ended) };
  }
  if (rows === 0) throw new UserError(`${path} holds no rows; give a file with one JSON object a line`);
}

function parseRow(path: string, line: number, text: string, ended: boolean): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const fault = ended
      ? 'not valid JSON; each line must hold one JSON object'
      : 'the file ends in the middle of this row; fetch the file again, or remove the row';
    throw new UserError(`${path}, line ${line}: ${fault}`, { cause });
  }
}

/** Lines end at "\n" only: other separators, such as U+2028, may stand within a JSON string. */
async function* readLines(path: string): AsyncGenerator<{ readonly text: string; readonly ended: boolean }> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest: string[] = [];
  let length = 0;
  let line = 1;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Uint8Array>) {
      const pieces = decoder.decode(chunk, { stream: true }).split('\n');
      for (const piece of pieces.slice(0, -1)) {
        yield { text: rest.join('') + piece, ended: true };
        rest = [];
        length = 0;
        line += 1;
      }
      const last = pieces.at(-1) ?? '';
      rest.push(last);
      length += last.length;
      if (length > MAX_ROW)
        throw new UserError(`${path}, line ${line}: longer than ${MAX_ROW >> 20} MiB; give one row a line`);
    }
    rest.push(decoder.decode());
  } catch (cause) {
    throw readFault(path, cause);
  }
  const last = rest.join('');
  if (last !== '') yield { text: last, ended: false };
}

function readFault(path: string, cause: unknown): unknown {
  if (cause instanceof TypeError) return new UserError(`${path} is not UTF-8 text; give a JSON Lines file`, { cause });
  if (!(cause instanceof Error && 'code' in cause)) return cause;
  return new UserError(`${path} ${readingFault(cause)}; give the path of a JSON Lines file`, { cause });
}
