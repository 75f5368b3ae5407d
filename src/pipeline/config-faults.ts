/** What a schema refuses of a configuration, each fault beside the place that is to be changed: a line of a file, or an option. */
import * as z from 'zod';
import { alternatives, nearest, shortened } from '../schema-words.js';

/** One `--set`, taken apart. */
export interface Override {
  /** As it was given: `--set train.steps=20`. */
  readonly option: string;
  readonly path: readonly string[];
  readonly setting: unknown;
}

/** One thing that is wrong: its place among the settings, and what to say of it. */
interface Fault {
  readonly path: readonly PropertyKey[];
  readonly what: string;
  /** Whether it shows only once every value has its type. */
  readonly late: boolean;
}

/** Keys that are few enough to name them all, and faults. */
const FEW = 10;
const MANY = 20;

/**
 * All faults of the last of several stages as one line.
 * @param stages the settings as written, then after each override
 * @param placeOf file and line of a setting
 */
export function describeFaults(
  schema: z.ZodType,
  stages: readonly unknown[],
  overrides: readonly Override[],
  placeOf: (path: readonly PropertyKey[]) => string,
): string {
  const known = knownKeys(schema);
  const faults = stages.map((stage) => faultsOf(schema, stage, known));
  const told = new Map<string, string[]>();
  const all = withoutRepeats(faults.at(-1)!);
  for (const fault of all.slice(0, MANY)) {
    const blamed = blame(fault, faults, overrides);
    const where = blamed === undefined ? placeOf(fault.path) : blamed.option;
    told.set(where, [...(told.get(where) ?? []), fault.what]);
  }
  const lines = [...told].map(([where, whats]) => `${where}: ${whats.join('; ')}`);
  return [...lines, ...(all.length > MANY ? [`and ${all.length - MANY} more`] : [])].join('; ');
}

/** What is of another kind than its setting needs no second word. */
function withoutRepeats(faults: readonly Fault[]): Fault[] {
  const told = new Set(faults.filter(({ late }) => !late).map(({ path }) => path.join('.')));
  return faults.filter(({ path, late }) => !late || !told.has(path.join('.')));
}

/** The override that brought a fault; undefined for one that the file has by itself. */
function blame(
  fault: Fault,
  stages: readonly (readonly Fault[])[],
  overrides: readonly Override[],
): Override | undefined {
  const has = (stage: readonly Fault[]): boolean => stage.some(({ what }) => what === fault.what);
  const before = stages.findLastIndex((stage) => !has(stage));
  if (before < 0) return undefined;
  const override = overrides[before]!;
  // Where a value had another type before, a fault of this kind could not show: then it is the file's, unless the override is about it.
  const hidden = fault.late && stages[before]!.some(({ late }) => !late);
  return hidden && !areRelated(fault.path, override.path) ? undefined : override;
}

function areRelated(a: readonly PropertyKey[], b: readonly PropertyKey[]): boolean {
  return Array.from({ length: Math.min(a.length, b.length) }, (_, i) => i).every((i) => String(a[i]) === String(b[i]));
}

function faultsOf(schema: z.ZodType, settings: unknown, known: KnownKeys): Fault[] {
  const issues = schema.safeParse(settings).error?.issues ?? [];
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') {
      const what = `${shortened(issue.path.join('.')) || 'the document'}: ${issue.message}`;
      return [{ path: issue.path, what, late: issue.code === 'custom' }];
    }
    return issue.keys.map((key) => {
      const path = [...issue.path, key];
      return { path, what: `unknown key ${shortened(path.join('.'))}${advice(path, settings, known)}`, late: false };
    });
  });
}

/** What was meant by a key that is none: one like it beside it, the same one elsewhere, or what there is. */
function advice(path: readonly PropertyKey[], settings: unknown, known: KnownKeys): string {
  const key = String(path.at(-1));
  const parent = path.slice(0, -1);
  const beside = known.at(parent, settings);
  const near = nearest(key, beside);
  if (near !== undefined) return `; did you mean ${near}?`;
  const elsewhere = known.paths.filter((other) => other.at(-1) === key);
  if (elsewhere.length === 1) return `; did you mean ${elsewhere[0]!.join('.')}?`;
  return beside.length > 0 && beside.length <= FEW
    ? `; there ${beside.length === 1 ? 'is' : 'are'} ${alternatives(beside)}`
    : '';
}

interface KnownKeys {
  /** Keys of the map at a path, of those kinds of map that what is there can be. */
  readonly at: (path: readonly PropertyKey[], settings: unknown) => string[];
  /** Of every setting whose maps have fixed keys. */
  readonly paths: readonly string[][];
}

/** The parts of a JSON Schema that lead to keys. */
interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape | boolean;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly oneOf?: readonly Shape[];
  readonly allOf?: readonly Shape[];
  readonly const?: unknown;
}

function knownKeys(schema: z.ZodType): KnownKeys {
  const root = z.toJSONSchema(schema, { io: 'input' }) as Shape;
  return {
    at: (path, settings) => {
      let shapes = alternativesOf(root);
      let value = settings;
      for (const key of path) {
        shapes = shapes.flatMap((shape) => innerShapes(shape, key));
        value = (value as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[key];
      }
      return [
        ...new Set(
          shapes.filter((shape) => isOf(shape, value)).flatMap((shape) => Object.keys(shape.properties ?? {})),
        ),
      ];
    },
    paths: pathsOf(root),
  };
}

function alternativesOf(shape: Shape): Shape[] {
  const inner = [...(shape.anyOf ?? []), ...(shape.oneOf ?? []), ...(shape.allOf ?? [])];
  return [shape, ...inner.flatMap(alternativesOf)];
}

function innerShapes({ properties, additionalProperties, items }: Shape, key: PropertyKey): Shape[] {
  const named = typeof key === 'string' && properties && Object.hasOwn(properties, key) ? [properties[key]!] : [];
  const any = typeof additionalProperties === 'object' ? [additionalProperties] : [];
  return [...named, ...any, ...(items && typeof key === 'number' ? [items] : [])].flatMap(alternativesOf);
}

/** Whether the map has the constants of the shape, as `reward: solver`. */
function isOf({ properties }: Shape, value: unknown): boolean {
  const map = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  return Object.entries(properties ?? {}).every(
    ([key, { const: fixed }]) => fixed === undefined || !Object.hasOwn(map, key) || map[key] === fixed,
  );
}

function pathsOf(shape: Shape): string[][] {
  return alternativesOf(shape).flatMap(({ properties }) =>
    Object.entries(properties ?? {}).flatMap(([key, inner]) => [
      [key],
      ...pathsOf(inner).map((path) => [key, ...path]),
    ]),
  );
}
