/** Which settings differ between two configurations, how, and what a run with the new ones has to start over from. */
import { type Json, type Phase, PHASES, type Run } from './rows.js';

type JsonObject = { readonly [key: string]: Json };

/** A setting that differs; undefined where there is none. */
export interface ChangedKey {
  /** Dotted. */
  readonly name: string;
  readonly old: Json | undefined;
  readonly next: Json | undefined;
}

/** In the order of the new configuration. The order of keys does not matter; a list is one setting. */
export function changedKeys(before: JsonObject, after: JsonObject, prefix = ''): ChangedKey[] {
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].flatMap((key) => {
    const [old, next] = [before[key], after[key]];
    const name = `${prefix}${key}`;
    if (isObject(old) && isObject(next)) return changedKeys(old, next, `${name}.`);
    return JSON.stringify(old) === JSON.stringify(next) ? [] : [{ name, old, next }];
  });
}

/** The seed among them. */
export function changedSettings(before: Run, after: Run): ChangedKey[] {
  return changedKeys({ seed: before.seed, ...before.config }, { seed: after.seed, ...after.config });
}

/** Settings that a message names, and characters that it shows of a value. */
const [NAMED, SHOWN] = [8, 60];

/** `train.steps 40 → 60, arms.new none → {"reward":"valid"}` */
export function describeChanges(changed: readonly ChangedKey[]): string {
  const told = changed.slice(0, NAMED).map(({ name, old, next }) => `${name} ${shown(old)} → ${shown(next)}`);
  const more = changed.length - told.length;
  return [...told, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

function shown(value: Json | undefined): string {
  const text = value === undefined ? 'none' : JSON.stringify(value);
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN - 1)}…`;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The first phase that reads any of them. */
export function firstPhase(changed: readonly ChangedKey[], phaseOf: (setting: string) => Phase): Phase {
  const phases = new Set(changed.map(({ name }) => phaseOf(name)));
  return PHASES.find((phase) => phases.has(phase))!;
}

/** What starting over from a phase keeps. */
const KEPT: Readonly<Record<Exclude<Phase, 'label'>, string>> = {
  'train-probe': 'the labels',
  'train-generator': 'the labels and the probes',
  evaluate: 'the labels, the probes and the training',
};

/** What to do to take other settings from a phase on. */
export function startOver(phase: Phase): string {
  if (phase === 'label') return "start over with 'propel run --fresh'";
  return `start over with 'propel ${phase} --fresh', which keeps ${KEPT[phase]}`;
}
