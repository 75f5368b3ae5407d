/** Which settings differ between two configurations. */
import type { Json } from './rows.js';

type JsonObject = { readonly [key: string]: Json };

/** Dotted names of the settings that differ, in the order of the new configuration. The order of keys does not matter; a list is one setting. */
export function changedKeys(before: JsonObject, after: JsonObject, prefix = ''): string[] {
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].flatMap((key) => {
    const [old, next] = [before[key], after[key]];
    const name = `${prefix}${key}`;
    if (isObject(old) && isObject(next)) return changedKeys(old, next, `${name}.`);
    return JSON.stringify(old) === JSON.stringify(next) ? [] : [name];
  });
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
