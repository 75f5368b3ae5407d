/** YAML as a user writes it: a text within bounds, whose values are plain data and whose keys know their lines. */
import { closeSync, openSync, readSync } from 'node:fs';
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, Parser, Lexer, visit } from 'yaml';
import type { Document, Node, Scalar, YAMLMap, YAMLParseError } from 'yaml';
import { readingFault, UserError } from '../errors.js';

/**
 * Bounds of one text, far above what a configuration needs. The parser takes time by the square of what it reads, and what is deep kills
 * the process.
 */
const MOST_BYTES = 128 * 1024;
const MOST_DEPTH = 48;
const MOST_VALUES = 5000;
/** Indicators, scalars, spaces and ends of lines. */
const MOST_LEXEMES = 12 * MOST_VALUES;
const TOO_MANY = `holds more than ${MOST_VALUES} values; give the settings alone`;

/** Names that reach into every JavaScript object. */
const RESERVED = new Set(['__proto__', 'constructor', 'prototype']);

export interface YamlDocument {
  readonly value: unknown;
  /** The line, from 1, of a key or an item (`['train', 'steps']`); undefined where the document does not hold it. */
  readonly lineOf: (path: readonly PropertyKey[]) => number | undefined;
}

/** @throws UserError when it cannot be read, or as {@link parseYaml} */
export function readYaml(file: string): YamlDocument {
  return parseYaml(readText(file), (line) => (line === undefined ? file : `${file}:${line}`));
}

/**
 * @param where what the text is, for messages: of a line, where one is known
 * @throws UserError for what is not YAML, reaches past the bounds, or names what no setting may be named
 */
export function parseYaml(text: string, where: (line?: number) => string): YamlDocument {
  const refuse = (what: string, line?: number): UserError => new UserError(`${where(line)}: ${what}`);
  if (text.length > MOST_BYTES) throw refuse(`is larger than ${MOST_BYTES / 1024} KiB; give the settings alone`);
  const excess = excessOf(text);
  if (excess !== null) throw refuse(excess);
  const lines = new LineCounter();
  // Its own check of keys takes time by the square of their number; visiting does it.
  const document = parseDocument(text, { prettyErrors: false, lineCounter: lines, uniqueKeys: false });
  const [syntax] = document.errors;
  if (syntax) throw refuse(`not valid YAML: ${syntaxFault(syntax)}`, lines.linePos(syntax.pos[0]).line);
  const lineAt = (node: unknown): number | undefined => {
    const range = (node as Node | null)?.range;
    return range ? lines.linePos(range[0]).line : undefined;
  };
  visit(document, {
    Map: (_, map) => {
      const fault = keysFault(map);
      if (fault !== null) throw refuse(fault.what, lineAt(fault.key));
    },
  });
  return { value: plainValue(document, refuse), lineOf: (path) => lineOf(document, path, lineAt) };
}

/** Why a path leads to no setting, `__proto__.seed`; null for nothing. */
export function pathFault(path: readonly string[]): string | null {
  const reserved = path.find((name) => RESERVED.has(name));
  if (reserved !== undefined) return `${reserved} is no name of a setting; take it out`;
  return path.length > MOST_DEPTH ? 'there is no setting so deep' : null;
}

function readText(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readAtMost(file, MOST_BYTES + 1));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw new UserError(`${file} is not UTF-8 text; give a YAML file`, { cause });
    }
    throw new UserError(`${file} ${readingFault(cause)}; give a YAML file`, { cause });
  }
}

/** The first bytes of a file, which may be endless. */
function readAtMost(file: string, most: number): Buffer {
  const bytes = Buffer.alloc(most);
  const handle = openSync(file, 'r');
  try {
    let length = 0;
    for (let read = -1; read !== 0 && length < most; length += read)
      read = readSync(handle, bytes, length, most - length, null);
    return bytes.subarray(0, length);
  } finally {
    closeSync(handle);
  }
}

/** Why a text is not to be composed, which is recursive; null for nothing. */
function excessOf(text: string): string | null {
  const parser = new Parser();
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    // What has been parsed is of no use yet.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > MOST_DEPTH) return `is nested more than ${MOST_DEPTH} levels deep; no setting is`;
    if (++lexemes > MOST_LEXEMES) return TOO_MANY;
  }
  return null;
}

/** As it is a key of the plain value. */
function keyName({ value }: Scalar): string {
  return `${(value ?? '') as string | number | boolean}`;
}

function keysFault(map: YAMLMap): { readonly what: string; readonly key: unknown } | null {
  const seen = new Set<string>();
  for (const { key } of map.items) {
    if (!isScalar(key)) return { what: 'not valid YAML: a key is a list or a map; give each key as a text', key };
    const name = keyName(key);
    if (RESERVED.has(name)) return { what: `${name} is no name of a setting; take it out`, key };
    if (seen.has(name)) return { what: 'not valid YAML: Map keys must be unique; correct that line', key };
    seen.add(name);
  }
  return null;
}

function plainValue(document: Document, refuse: (what: string) => UserError): unknown {
  let value: unknown;
  try {
    value = document.toJS();
  } catch (cause) {
    throw refuse(`not valid YAML: ${firstLine((cause as Error).message)}`);
  }
  // References may repeat what they refer to, and hold themselves.
  let left = MOST_VALUES;
  const count = (part: unknown, depth: number): void => {
    if (depth > MOST_DEPTH) throw refuse('a reference holds itself; write it out');
    if (--left < 0) throw refuse(TOO_MANY);
    if (typeof part === 'object' && part !== null) for (const inner of Object.values(part)) count(inner, depth + 1);
  };
  count(value, 0);
  return value;
}

function lineOf(
  document: Document,
  path: readonly PropertyKey[],
  lineAt: (node: unknown) => number | undefined,
): number | undefined {
  let node: unknown = document.contents;
  let line = lineAt(node);
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && keyName(key) === String(step));
      if (pair === undefined) return undefined;
      line = lineAt(pair.key);
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      if (node === undefined) return undefined;
      line = lineAt(node);
    } else return undefined;
  }
  return line;
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
