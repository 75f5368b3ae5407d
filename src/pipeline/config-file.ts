/** Reads a configuration: a YAML file, overridden setting by setting, checked by the schema. Every fault names where it is. */
import { parseDocument } from 'yaml';
import type { Document } from 'yaml';
import type * as z from 'zod';
import { UserError } from '../errors.js';
import { configSchema } from './config.js';
import type { Config } from './config.js';
import { plainValue, readLayers } from './config-layers.js';
import type { LayeredDocument } from './config-layers.js';
import { findFile } from './paths.js';

/** One `--set`, taken apart. */
interface Override {
  /** As it was given: `train.steps=20`. */
  readonly text: string;
  readonly path: readonly string[];
}

/** What a comparison's file says beyond a run's: a run takes the rest of such a file, to be one of its seeds. */
const COMPARISON_KEYS = ['seeds', 'parallel'] as const;

/**
 * Read a YAML file and what it extends, apply overrides (`train.steps=20`), and check it.
 * @throws UserError with file, line or key, and what is wrong.
 */
export function loadConfig(path: string, overrides: readonly string[] = []): Config {
  return loadSettings(path, overrides, configSchema, COMPARISON_KEYS);
}

/** {@link loadConfig} by another schema; top-level keys that are to be passed over are taken out of the file, not out of overrides. */
export function loadSettings<Schema extends z.ZodType>(
  path: string,
  overrides: readonly string[],
  schema: Schema,
  passedOver: readonly string[] = [],
): z.output<Schema> {
  const file = findFile(path, 'configuration');
  const { document, fileOf } = readLayers(file);
  for (const key of passedOver) if (document.has(key)) document.delete(key);
  const applied = overrides.map((override) => applyOverride(document, override));
  const parsed = schema.safeParse(plainValue(document, file));
  if (parsed.success) return parsed.data;
  const faults = new Map<string, string[]>();
  for (const issue of parsed.error.issues) {
    const { where, what } = describeIssue(issue, fileOf, applied);
    faults.set(where, [...(faults.get(where) ?? []), what]);
  }
  const told = [...faults].map(([where, whats]) => `${where}: ${whats.join('; ')}`).join('; ');
  throw new UserError(`${told}; 'propel config --schema' documents every setting`);
}

function applyOverride(document: Document, text: string): Override {
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

interface Fault {
  /** Where it was written: the file, or an override. */
  readonly where: string;
  /** The key and what is wrong with it. */
  readonly what: string;
}

function describeIssue(
  issue: z.core.$ZodIssue,
  fileOf: LayeredDocument['fileOf'],
  overrides: readonly Override[],
): Fault {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key].join('.')) : [];
  const key = issue.path.join('.');
  const override = overrides.findLast(({ path }) => [key, ...unknown].some((name) => isWithin(name, path.join('.'))));
  const first = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]!] : issue.path;
  const where = override === undefined ? fileOf(first) : `--set ${override.text}`;
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
