/** Reads a configuration: a YAML file, overridden setting by setting, checked by the schema. Every fault names where it is. */
import type * as z from 'zod';
import { UserError } from '../errors.js';
import { configSchema } from './config.js';
import type { Config } from './config.js';
import { shortened } from '../schema-words.js';
import { describeFaults } from './config-faults.js';
import type { Override } from './config-faults.js';
import { isArm, isSettings, layOver, placeText, readLayers, withoutDropped, withSetting } from './config-layers.js';
import { findPipeline } from './paths.js';
import { parseYaml, pathFault } from './yaml-document.js';

/** A setting that an option gives, `train.steps=20`: of `--set` itself, or of an option of its own, `--seeds 0,1`. */
export type GivenOverride = string | { readonly option: string; readonly setting: string };

/** What a comparison's file says beyond a run's: a run takes the rest of such a file, to be one of its seeds. */
const COMPARISON_KEYS = ['seeds', 'parallel'] as const;

/**
 * Read a YAML file and what it extends, apply overrides (`train.steps=20`), and check it.
 * @throws UserError with file, line or key, and what is wrong
 */
export function loadConfig(path: string, overrides: readonly GivenOverride[] = []): Config {
  return loadSettings(path, overrides, configSchema, COMPARISON_KEYS);
}

/** {@link loadConfig} by another schema; top-level keys that are to be passed over are taken out of the file, not out of overrides. */
export function loadSettings<Schema extends z.ZodType>(
  path: string,
  overrides: readonly GivenOverride[],
  schema: Schema,
  passedOver: readonly string[] = [],
): z.output<Schema> {
  const { value, placeOf } = readLayers(findPipeline(path));
  const written = isSettings(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => !passedOver.includes(key)))
    : value;
  const given = overrides.map((override) => readOverride(override));
  // The settings after each override: what is refused is the fault of the one that brought it.
  const stages = [written];
  for (const override of given) stages.push(applyOverride(stages.at(-1), override));
  const parsed = schema.safeParse(stages.at(-1));
  if (parsed.success) return parsed.data;
  const faults = describeFaults(schema, stages, given, (at) => placeText(placeOf(at)));
  throw new UserError(`${faults}; 'propel config --schema' documents every setting`);
}

function readOverride(given: GivenOverride): Override {
  const { option, setting: text } =
    typeof given === 'string' ? { option: `--set ${shortened(given)}`, setting: given } : given;
  const equals = text.indexOf('=');
  if (equals < 1) throw new UserError(`${option}: write key=value, for example --set train.steps=20`);
  const path = text.slice(0, equals).split('.');
  const fault = pathFault(path);
  if (fault !== null) throw new UserError(`${option}: ${fault}`);
  return { option, path, setting: parseYaml(text.slice(equals + 1), () => option).value };
}

function applyOverride(settings: unknown, { option, path, setting }: Override): unknown {
  // As a file over another drops an arm.
  const drops = setting === null && isArm(path);
  const changed = drops
    ? { value: layOver(settings, { arms: { [path[1]!]: null } }) }
    : withSetting(settings, path, setting);
  if (changed === null) throw new UserError(`${option}: there is no setting ${shortened(path.join('.'))}`);
  return withoutDropped(changed.value, () => option);
}
