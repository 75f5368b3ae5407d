/** Choosing an execution provider: the setting names one, or `auto` takes the fastest of those that pass their tests. */
import { RunError, UserError } from '../errors.js';
import { providersHere } from './availability.js';
import { testProvider, testProviderApart } from './self-test.js';
import type { SelfTest } from './self-test.js';
import { computeType, typeRefusal } from './provider-types.js';
import type { ComputeType } from './compute-type.js';
import type { TypeChoice } from './provider-types.js';
import { EXECUTION_PROVIDERS } from './session.js';
import type { ExecutionProvider } from './session.js';

export const PROVIDER_SETTINGS = ['auto', ...EXECUTION_PROVIDERS] as const;
export type ProviderSetting = (typeof PROVIDER_SETTINGS)[number];

export interface ProviderChoice {
  readonly provider: ExecutionProvider;
  /** What the model's large products are computed in; a model that is stored otherwise may have another. */
  readonly dtype: ComputeType;
  /** What was tried, in order, for the run's record and the user. */
  readonly tests: readonly SelfTest[];
}

/** What came of trying a provider on a model: how long its step takes, null when it is wrong, and why in one line. */
export interface Trial {
  readonly milliseconds: number | null;
  readonly detail: string;
}

const FLOAT32_MODEL: TypeChoice = { dtype: 'auto', stored: () => 'float32' };

/**
 * The provider of a setting, tested in the type that it would compute in. Of `auto`, each is tested in a process of its own, which a driver may crash; where more than one passes,
 * `tryModel` is asked of each and the fastest that is right is taken. Without it the first that passes, a GPU before the CPU.
 * @throws UserError for a setting that is none, and for a type that the provider which was named does not compute in.
 * @throws RunError when the provider that was named, or every one, fails its self-test.
 */
export async function chooseProvider(
  setting: ProviderSetting,
  tryModel: ((provider: ExecutionProvider) => Promise<Trial>) | null = null,
  types: TypeChoice = FLOAT32_MODEL,
): Promise<ProviderChoice> {
  const typeOf = (provider: ExecutionProvider): ComputeType => computeType(types, provider);
  if (!PROVIDER_SETTINGS.includes(setting)) {
    throw new UserError(`provider '${setting}' is unknown; it is one of ${PROVIDER_SETTINGS.join(', ')}`);
  }
  if (setting !== 'auto') {
    const refusal = typeRefusal(types.dtype, setting);
    if (refusal) throw new UserError(refusal);
    const test = await testProvider(setting, typeOf(setting));
    if (test.passed) return { provider: setting, dtype: typeOf(setting), tests: [test] };
    throw unusable([test], types);
  }
  const tests: SelfTest[] = [];
  for (const candidate of providersHere()) {
    const refusal = typeRefusal(types.dtype, candidate);
    if (refusal) tests.push({ provider: candidate, passed: false, gradientError: null, detail: refusal });
    else if (candidate === 'cpu') tests.push(await testProvider(candidate, typeOf(candidate)));
    else tests.push(await testProviderApart(candidate, typeOf(candidate)));
  }
  const passed = tests.filter((test) => test.passed);
  if (passed.length === 0) throw unusable(tests, types);
  const [first] = passed;
  if (passed.length === 1 || tryModel === null) {
    return { provider: first!.provider, dtype: typeOf(first!.provider), tests };
  }
  return fastest(tests, tryModel, types);
}

/** Of the providers that passed, the one whose step is right and fastest. @throws RunError when none is right. */
export async function fastest(
  tests: readonly SelfTest[],
  tryModel: (provider: ExecutionProvider) => Promise<Trial>,
  types: TypeChoice = FLOAT32_MODEL,
): Promise<ProviderChoice> {
  const tried: SelfTest[] = [];
  let best: { readonly provider: ExecutionProvider; readonly milliseconds: number } | null = null;
  for (const test of tests) {
    if (!test.passed) {
      tried.push(test);
      continue;
    }
    const { provider } = test;
    const { milliseconds, detail } = await trialOf(provider, tryModel);
    tried.push({ ...test, passed: milliseconds !== null, detail });
    if (milliseconds !== null && (best === null || milliseconds < best.milliseconds)) best = { provider, milliseconds };
  }
  if (best === null) throw unusable(tried, types);
  return { provider: best.provider, dtype: computeType(types, best.provider), tests: tried };
}

async function trialOf(
  provider: ExecutionProvider,
  tryModel: (provider: ExecutionProvider) => Promise<Trial>,
): Promise<Trial> {
  try {
    return await tryModel(provider);
  } catch (error) {
    return { milliseconds: null, detail: `it cannot run the model: ${(error as Error).message.split('\n')[0]}` };
  }
}

function unusable(tests: readonly SelfTest[], { dtype }: TypeChoice): RunError {
  const reasons = tests.map((t) => `${t.provider}: ${t.detail}`).join('; ');
  const instead = dtype === 'auto' || dtype === 'float32' ? 'provider: cpu' : 'dtype: auto';
  return new RunError(`no execution provider is usable (${reasons}); see 'propel doctor', or set ${instead}`);
}
