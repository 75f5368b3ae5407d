/** A configuration as it is written down: a YAML file, laid over the file that it extends, and so on. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Document, parseDocument } from 'yaml';
import type { YAMLParseError } from 'yaml';
import { UserError } from '../errors.js';

/** Settings under their names, as a YAML map holds them. */
type Settings = { readonly [key: string]: unknown };

export interface LayeredDocument {
  /** All layers as one document, without `extends`. */
  readonly document: Document;
  /** The file that gives a setting (`['train', 'steps']`); the outermost where none does. */
  readonly fileOf: (path: readonly PropertyKey[]) => string;
}

interface Layer {
  readonly file: string;
  readonly document: Document;
  readonly value: unknown;
}

/** Replaced as a whole where a file gives it, so that a file can have fewer arms than the one that it extends. */
const WHOLE = new Set(['arms']);

/**
 * Read a file and those that it extends. Maps are merged key by key; lists, single values and `arms` replace what they extend.
 * @throws UserError with the file, the line or key, and what is wrong
 */
export function readLayers(file: string): LayeredDocument {
  const layers = readChain(file);
  if (layers.length === 1) return { document: layers[0]!.document, fileOf: () => file };
  const merged = layers.map(({ value }) => value as Settings).reduceRight((base, over) => merge(base, over));
  return {
    document: new Document(merged),
    fileOf: (path) => layers.find(({ value }) => holds(value, path))?.file ?? file,
  };
}

/** The file, the one that it extends, and so on to the one that extends none. */
function readChain(file: string): Layer[] {
  const layers: Layer[] = [];
  for (let next: string | null = file; next !== null;) {
    const again: number = layers.findIndex((layer) => layer.file === next);
    if (again >= 0) {
      const circle = [...layers.slice(again).map((layer) => layer.file), next].join(' → ');
      throw new UserError(`${layers.at(-1)!.file}: extends: a circle, ${circle}; take one 'extends' out`);
    }
    const document: Document.Parsed = parseYaml(next);
    const parent = takeExtends(document, next);
    layers.push({ file: next, document, value: plainValue(document, next) });
    next = parent;
  }
  if (layers.length > 1) {
    const empty = layers.find(({ value }) => !isSettings(value));
    if (empty !== undefined) throw new UserError(`${empty.file}: holds no settings; give a map of settings to extend`);
  }
  return layers;
}

function parseYaml(file: string): Document.Parsed {
  const document = parseDocument(readConfiguration(file), { prettyErrors: true });
  const [syntax] = document.errors;
  if (!syntax) return document;
  const line = syntax.linePos?.[0].line;
  throw new UserError(`${file}${line ? `:${line}` : ''}: not valid YAML: ${syntaxFault(syntax)}`);
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

/** Take `extends` out of a document. @returns the absolute path of the file it names, null where there is none */
function takeExtends(document: Document.Parsed, file: string): string | null {
  if (!document.has('extends')) return null;
  const named = document.get('extends');
  document.delete('extends');
  if (typeof named !== 'string' || named === '') {
    throw new UserError(`${file}: extends: give the path of one YAML file, from this file's folder`);
  }
  const parent = resolve(dirname(file), named);
  if (!existsSync(parent))
    throw new UserError(`${file}: extends: ${parent} does not exist; give a path from ${dirname(file)}`);
  return parent;
}

/** A document's value. @throws UserError where references within it run wild */
export function plainValue(document: Document, where: string): unknown {
  try {
    return document.toJS() as unknown;
  } catch (cause) {
    throw new UserError(`${where}: not valid YAML: ${firstLine((cause as Error).message)}`, { cause });
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

function merge(base: Settings, over: Settings): Settings {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = base[key];
    merged[key] = isSettings(below) && isSettings(value) && !WHOLE.has(key) ? merge(below, value) : value;
  }
  return merged;
}

function holds(value: unknown, path: readonly PropertyKey[]): boolean {
  if (path.length === 0) return true;
  const [key, ...rest] = path;
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key!)
    ? holds((value as Record<PropertyKey, unknown>)[key!], rest)
    : false;
}

function isSettings(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
