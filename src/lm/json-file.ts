/** Reads the JSON files of a checkpoint, and says what is wrong with one in a line. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { inOneLine, UserError } from '../errors.js';

/**
 * A JSON file's content.
 * @param absent what to do about a file that is not there, for the message
 * @throws UserError naming the file when it cannot be read or is not JSON
 */
export function readJsonFile(file: string, absent: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UserError(
      code === 'ENOENT' ? `${file} is missing: ${absent}` : `${file} cannot be read (${code}): ${absent}`,
      { cause },
    );
  }
  return parseJsonText(text, file);
}

/** @throws UserError naming the file that the text is of. */
export function parseJsonText(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UserError(`${file} is not valid JSON: ${inOneLine((cause as Error).message)}`, { cause });
  }
}

/**
 * A file's content as a schema takes it.
 * @param advice what to do, the end of the line
 * @throws UserError naming the file, the field and what is wrong with it
 */
export function parseFields<T extends z.ZodType>(schema: T, json: unknown, file: string, advice = ''): z.output<T> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new UserError(
    `${file}: ${inOneLine(issue.path.join('.')) || 'document'}: ${inOneLine(issue.message)}${advice && `; ${advice}`}`,
  );
}

/** A value of a file as part of a message. */
export function quoted(value: unknown): string {
  return inOneLine(JSON.stringify(value) ?? 'nothing');
}
