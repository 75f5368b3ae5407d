/** Reads a configuration: a YAML file, overridden setting by setting, checked by the schema. Every fault names where it is. */
import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import type { Document, YAMLParseError } from 'yaml';
import type * as z from 'zod';
import { UserError } from '../errors.js';
import { configSchema } from './config.js';
import type { Config } from './config.js';
import { findFile } from './paths.js';

/** One `--set`, taken apart. */
interface Override {
  /** As it was given: `train.steps=20`. */
  readonly text: string;
  readonly path: readonly string[];
}

/**
 * Read a YAML file, apply overrides (`train.steps=20`), and check it.
 * @throws UserError with file, line or key, and what is wrong.
 */
export function loadConfig(path: string, overrides: readonly string[] = []): Config {
  const file = findFile(path, 'configuration');
  const document = parseDocument(readConfiguration(file), { prettyErrors: true });
  const [syntax] = document.errors;
  if (syntax) {
    const line = syntax.linePos?.[0].line;
    throw new UserError(`${file}${line ? `:${line}` : ''}: not valid YAML: ${syntaxFault(syntax)}`);
  }
  const applied = overrides.map((override) => applyOverride(document, override));
  const parsed = configSchema.safeParse(plainValue(document, file));
  if (parsed.success) return parsed.data;
  const faults = new Map<string, string[]>();
  for (const issue of parsed.error.issues) {
    const { where, what } = describeIssue(issue, file, applied);
    faults.set(where, [...(faults.get(where) ?? []), what]);
  }
  const told = [...faults].map(([where, whats]) => `${where}: ${whats.join('; ')}`).join('; ');
  throw new UserError(`${told}; 'propel config --schema' documents every setting`);
}

function readConfiguration(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const fault = code === 'EISDIR' ? 'is a folder' : `cannot be read (${code})`;
    throw new UserError(`${file} ${fault}; give a YAML file`, { cause });
  }
}

/** What is wrong at the line that the caller names, and what to do. */
function syntaxFault({ code, message }: YAMLParseError): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document begins; keep one';
  return `${firstLine(message)}; correct that line`;
}

/** The first line of a message of the YAML parser, without the position. */
function firstLine(message: string): string {
  return message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '');
}

function applyOverride(document: Document.Parsed, text: string): Override {
  const equals = text.indexOf('=');
  if (equals < 1) throw new UserError(`--set ${text}: write key=value, for example --set train.steps=20`);
  const path = text.slice(0, equals).split('.');
  const value = parseDocument(text.slice(equals + 1));
  if (value.errors.length) throw new UserError(`--set ${text}: the value is not valid YAML`);
  try {
    document.setIn(path, plainValue(value, `--set ${text}`));
  } catch (cause) {
    if (cause instanceof UserError) throw cause;
    throw new UserError(`--set ${text}: there is no setting ${path.join('.')}`, { cause });
  }
  return { text, path };
}

/** @throws UserError where references within the document run wild. */
function plainValue(document: Document.Parsed, where: string): unknown {
  try {
    return document.toJS() as unknown;
  } catch (cause) {
    throw new UserError(`${where}: not valid YAML: ${firstLine((cause as Error).message)}`, { cause });
  }
}

interface Fault {
  /** Where it was written: the file, or an override. */
  readonly where: string;
  /** The key and what is wrong with it. */
  readonly what: string;
}

function describeIssue(issue: z.core.$ZodIssue, file: string, overrides: readonly Override[]): Fault {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key].join('.')) : [];
  const key = issue.path.join('.');
  const override = overrides.findLast(({ path }) => [key, ...unknown].some((name) => isWithin(name, path.join('.'))));
  const where = override === undefined ? file : `--set ${override.text}`;
  if (unknown.length) return { where, what: `unknown ${unknown.length > 1 ? 'keys' : 'key'} ${unknown.join(', ')}` };
  return { where, what: `${key || 'the document'}: ${messageOf(issue)}` };
}

function isWithin(name: string, of: string): boolean {
  return name === of || name.startsWith(`${of}.`);
}

/** A key's own fault rather than that there is one; what is not there is called missing. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_key') return `write the name in ${issue.issues[0]!.message}`;
  const missing = /expected (\w+), received undefined$/.exec(issue.message);
  return missing ? `missing; give a value of type ${missing[1]}` : issue.message.replace(/^Invalid input: /, '');
}
