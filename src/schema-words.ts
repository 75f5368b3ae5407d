/** Says in the product's words what a schema refuses, wherever zod checks what came from outside: what to give instead, and what was meant. */
import { distance } from 'fastest-levenshtein';
import * as z from 'zod';

/** Characters of a value, and of what else was given, that a message repeats. */
const SHOWN = 40;
const LONGEST = 200;

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'a map',
  record: 'a map',
};

/** What is counted of a value that is too small or too large. */
const COUNTED: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  object: ['key', 'keys'],
  record: ['key', 'keys'],
};

/** Have all schemas say their faults so; a schema's own message goes before it. */
export function sayFaultsInWords(): void {
  z.config({ customError: faultOf });
}

/** What is wrong with a value and what to give instead; undefined leaves it to a later reader. */
function faultOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return typeFault(isWhole(issue.inst) ? 'int' : issue.expected, issue.input);
    case 'invalid_value':
      return choiceFault(issue.values, issue.input);
    case 'invalid_union':
      return unionFault(issue);
    case 'too_small':
      return `give ${limit(issue.origin, issue.minimum, issue.inclusive === false ? 'above' : 'least', issue.input)}`;
    case 'too_big':
      return `give ${limit(issue.origin, issue.maximum, issue.inclusive === false ? 'below' : 'most', issue.input)}`;
    case 'not_multiple_of':
      return `give a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return unknownKeys(issue.keys, shapeOf(issue.inst));
    case 'invalid_key':
      return `write the name in ${issue.issues[0]?.message ?? 'another form'}`;
    case 'invalid_format':
      return issue.format === 'url' ? 'give a URL' : `give a text of the form ${issue.pattern ?? issue.format}`;
    default:
      return undefined;
  }
}

function isWhole(schema: unknown): boolean {
  return schema instanceof z.ZodNumberFormat;
}

function typeFault(expected: string, input: unknown): string {
  const kind = KINDS[expected] ?? (expected === 'null' ? 'null' : `a value of type ${expected}`);
  if (input === undefined) return `missing; give ${kind}`;
  return KINDS[expected]?.endsWith(' number') && typeof input === 'number' && !Number.isFinite(input)
    ? 'give a finite number'
    : `give ${kind}, not ${shown(input)}`;
}

function choiceFault(values: readonly unknown[], input: unknown): string {
  const given = input === undefined ? 'missing; ' : '';
  const not = input === undefined ? '' : `, not ${shown(input)}`;
  return `${given}give ${alternatives(values.map(String))}${not}${didYouMean(input, values.map(String))}`;
}

type UnionIssue = z.core.$ZodRawIssue<z.core.$ZodIssueInvalidUnion>;

/** A choice by a key says its choices; of other unions each alternative has its own fault. */
function unionFault(issue: UnionIssue): string | undefined {
  const { discriminator, options } = issue as UnionIssue & { discriminator?: string; options?: readonly unknown[] };
  if (discriminator !== undefined && options !== undefined) {
    const value = isObject(issue.input) ? issue.input[discriminator] : undefined;
    return choiceFault(options, value);
  }
  const faults = issue.errors.flatMap((errors) => (errors[0]?.path.length === 0 ? [errors[0].message] : []));
  const wanted = [...new Set(faults)].map(
    (fault) => /^(?:missing; )?give (.*?)(?:, not [^]*)?$/.exec(fault)?.[1] ?? fault,
  );
  if (wanted.length < 2) return faults[0];
  return issue.input === undefined
    ? `missing; give ${alternatives(wanted)}`
    : `give ${alternatives(wanted)}, not ${shown(issue.input)}`;
}

function limit(origin: string, bound: unknown, side: 'above' | 'below' | 'least' | 'most', input: unknown): string {
  const strict = side === 'above' || side === 'below';
  const counted = COUNTED[origin];
  if (counted !== undefined) {
    const amount = strict
      ? `${side === 'above' ? 'more' : 'fewer'} than ${String(bound)}`
      : `at ${side} ${String(bound)}`;
    return `${amount} ${counted[Number(bound) === 1 ? 0 : 1]}`;
  }
  const kind = origin === 'int' ? 'a whole number' : 'a number';
  return `${kind} ${strict ? `${side} ${String(bound)}` : `of at ${side} ${String(bound)}`}, not ${shown(input)}`;
}

function unknownKeys(keys: readonly string[], known: readonly string[]): string {
  const named = keys.map((key) => `${key}${didYouMean(key, known)}`);
  return `unknown ${keys.length > 1 ? 'keys' : 'key'} ${named.join(', ')}`;
}

function shapeOf(schema: unknown): string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** `a`, `a or b`, `a, b or c`. */
export function alternatives(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

/** `; did you mean <name>?` where a known name is near, else nothing. */
export function didYouMean(given: unknown, known: readonly string[]): string {
  const name = typeof given === 'string' ? nearest(given, known) : undefined;
  return name === undefined ? '' : `; did you mean ${name}?`;
}

/** The known name that a misspelt one was meant to be; undefined where none is near. */
export function nearest(given: string, known: readonly string[]): string | undefined {
  const word = given.slice(0, 100).toLowerCase();
  const most = Math.ceil(word.length / 3);
  // Of two as near, the one of the same letters: they were only put in another order.
  const alike = (name: string): number => [...word].filter((letter) => name.includes(letter)).length;
  const ranked = known
    .filter((name) => name !== given && Math.abs(name.length - word.length) <= most)
    .map((name) => ({ name, away: distance(word, name.toLowerCase()), alike: alike(name) }))
    .toSorted((a, b) => a.away - b.away || b.alike - a.alike);
  const [first] = ranked;
  return first !== undefined && first.away <= most ? first.name : undefined;
}

/** What was given as a message of one line repeats it. */
export function shortened(text: string, most = LONGEST): string {
  const start = text.length > most ? `${text.slice(0, most)}…` : text;
  return start.replaceAll(/[\r\n]+/g, ' ');
}

/** A value as a message repeats it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'a map';
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(shortened(value, SHOWN));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
