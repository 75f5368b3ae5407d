/** A configuration as it is written down: a YAML file, laid over the file that it extends, and so on. */
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { UserError } from '../errors.js';
import { didYouMean, shortened } from '../schema-words.js';
import { findExtended } from './paths.js';
import { readYaml } from './yaml-document.js';
import type { YamlDocument } from './yaml-document.js';

/** Settings under their names, as a YAML map holds them. */
export type Settings = { readonly [key: string]: unknown };

/** Where a setting is written. */
export interface Place {
  readonly file: string;
  /** Undefined for what no line gives. */
  readonly line: number | undefined;
}

export interface Layers {
  /** All layers as one, without `extends`. */
  readonly value: unknown;
  /** The file and line that give a setting (`['train', 'steps']`), else what it stands in; the outermost file where none does. */
  readonly placeOf: (path: readonly PropertyKey[]) => Place;
}

interface Layer extends YamlDocument {
  readonly file: string;
}

/**
 * Read a file and those that it extends. Maps are merged key by key, lists and single values replace what they extend, and `null` in
 * `arms` drops what it stands at.
 * @throws UserError with the file, the line or key, and what is wrong
 */
export function readLayers(file: string): Layers {
  const layers = readChain(file);
  const placeOf: Layers['placeOf'] = (path) => {
    for (let length = path.length; length > 0; length--) {
      const layer = layers.find(({ lineOf }) => lineOf(path.slice(0, length)) !== undefined);
      if (layer !== undefined) return { file: layer.file, line: layer.lineOf(path.slice(0, length)) };
    }
    return { file, line: undefined };
  };
  const value = layers.map((layer) => layer.value).reduceRight((base, over) => layOver(base, over));
  return { value: withoutDropped(value, (path) => placeText(placeOf(path))), placeOf };
}

/** `file:12` or `file`. */
export function placeText({ file, line }: Place): string {
  return line === undefined ? file : `${file}:${line}`;
}

/** The file, the one that it extends, and so on to the one that extends none. */
function readChain(file: string): Layer[] {
  const layers: Layer[] = [];
  const real: string[] = [];
  for (let next: string | null = file; next !== null;) {
    const document: YamlDocument = readYaml(next);
    real.push(realpathSync(next));
    const { parent, value } = takeExtends(document, next);
    layers.push({ file: next, value, lineOf: document.lineOf });
    if (parent !== null) {
      const again = real.indexOf(realpathSync(parent));
      if (again >= 0) {
        const circle = [...layers.slice(again).map((layer) => layer.file), parent].join(' → ');
        throw new UserError(`${extendsOf(document, next)}: a circle, ${circle}; take one 'extends' out`);
      }
    }
    next = parent;
  }
  const empty = layers.find(({ value }) => value === null || (layers.length > 1 && !isSettings(value)));
  if (empty === undefined) return layers;
  throw new UserError(
    `${empty.file}: holds no settings; give a map of settings${layers.length > 1 ? ' to extend' : ''}`,
  );
}

const extendsOf = ({ lineOf }: YamlDocument, file: string): string =>
  `${placeText({ file, line: lineOf(['extends']) })}: extends`;

/** What a document holds beside `extends`, and the path of the file that this names; null where there is none. */
function takeExtends(
  document: YamlDocument,
  file: string,
): { readonly value: unknown; readonly parent: string | null } {
  if (!isSettings(document.value) || !Object.hasOwn(document.value, 'extends')) {
    return { value: document.value, parent: null };
  }
  const { extends: named, ...value } = document.value;
  if (typeof named === 'string' && named !== '') {
    return { value, parent: findExtended(named, dirname(file), extendsOf(document, file)) };
  }
  throw new UserError(
    `${extendsOf(document, file)}: give one YAML file, by its path from this file's folder or as a pipeline of the package`,
  );
}

/** Settings over others. New keys stand behind the one that they follow, so that a file can say where an arm of its own belongs. */
export function layOver(base: unknown, over: unknown, path: readonly string[] = []): unknown {
  if (!isSettings(base) || !isSettings(over) || startsOver(base, over, path)) return over;
  const merged = new Map(Object.entries(base));
  const order = Object.keys(base);
  let before: string | undefined;
  for (const [key, value] of Object.entries(over)) {
    const known = merged.has(key);
    if (!known) order.splice(before === undefined ? order.length : order.indexOf(before) + 1, 0, key);
    before = key;
    if (value === null && known && isArm([...path, key])) merged.delete(key);
    else merged.set(key, known ? layOver(merged.get(key), value, [...path, key]) : value);
  }
  return Object.fromEntries(order.filter((key) => merged.has(key)).map((key) => [key, merged.get(key)]));
}

/** An arm of another reward has other keys. */
function startsOver(base: Settings, over: Settings, path: readonly string[]): boolean {
  return isArm(path) && Object.hasOwn(over, 'reward') && over['reward'] !== base['reward'];
}

/** Whether a path is that of one arm, `['arms', 'propel']`. */
export function isArm(path: readonly string[]): boolean {
  return path.length === 2 && path[0] === 'arms';
}

/**
 * Settings without what `null` drops in arms, where no setting can be null but those of `train`.
 * @param place of an arm, for messages
 * @throws UserError for an arm that is dropped and was not there
 */
export function withoutDropped(value: unknown, place: (path: readonly string[]) => string): unknown {
  if (!isSettings(value) || !isSettings(value['arms'])) return value;
  const { arms } = value;
  const names = Object.keys(arms).filter((name) => arms[name] !== null);
  const missing = Object.keys(arms).find((name) => arms[name] === null);
  if (missing !== undefined) {
    const where = `${place(['arms', missing])}: arms.${shortened(missing)}`;
    throw new UserError(`${where}: null drops an arm, and there is none of this name${didYouMean(missing, names)}`);
  }
  const kept = (arm: unknown): unknown =>
    isSettings(arm) ? Object.fromEntries(Object.entries(arm).filter(([, setting]) => setting !== null)) : arm;
  return { ...value, arms: Object.fromEntries(names.map((name) => [name, kept(arms[name])])) };
}

/** Settings with one of them replaced; maps on the way are made. @returns null where something else than a map is in the way */
export function withSetting(
  value: unknown,
  path: readonly string[],
  setting: unknown,
): { readonly value: unknown } | null {
  const [key, ...rest] = path;
  if (key === undefined) return { value: setting };
  if (Array.isArray(value)) {
    const at = Number(key);
    if (!/^\d+$/.test(key) || at > value.length) return null;
    const inner = withSetting(value[at], rest, setting);
    return inner && { value: [...value.slice(0, at), inner.value, ...value.slice(at + 1)] };
  }
  const settings = value ?? {};
  if (!isSettings(settings)) return null;
  const inner = withSetting(Object.hasOwn(settings, key) ? settings[key] : undefined, rest, setting);
  return inner && { value: { ...settings, [key]: inner.value } };
}

export function isSettings(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
