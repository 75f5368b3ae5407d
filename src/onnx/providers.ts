/** Choosing an execution provider: the setting names one, or `auto` takes the fastest of those that pass their tests. */
import { RunError, UserError } from '../errors.js';
import { providersHere } from './availability.js';
import { testProvider, testProviderApart } from './self-test.js';
import type { SelfTest } from './self-test.js';
import { EXECUTION_PROVIDERS } from './session.js';
import type { ExecutionProvider } from './session.js';

export const PROVIDER_SETTINGS = ['auto', ...EXECUTION_PROVIDERS] as const;
export type ProviderSetting = (typeof PROVIDER_SETTINGS)[number];

export interface ProviderChoice {
  readonly provider: ExecutionProvider;
  /** What was tried, in order, for the run's record and the user. */
  readonly tests: readonly SelfTest[];
}

/** What came of trying a provider on a model: how long its step takes, null when it is wrong, and why in one line. */
export interface Trial {
  readonly milliseconds: number | null;
  readonly detail: string;
}

/**
 * The provider of a setting. Of `auto`, each is tested in a process of its own, which a driver may crash; where more than one passes,
 * `tryModel` is asked of each and the fastest that is right is taken. Without it the first that passes, a GPU before the CPU.
 * @throws UserError for a setting that is none.
 * @throws RunError when the provider that was named, or every one, fails its self-test.
 */
export async function chooseProvider(
  setting: ProviderSetting,
  tryModel: ((provider: ExecutionProvider) => Promise<Trial>) | null = null,
): Promise<ProviderChoice> {
  if (!PROVIDER_SETTINGS.includes(setting)) {
    throw new UserError(`provider '${setting}' is unknown; it is one of ${PROVIDER_SETTINGS.join(', ')}`);
  }
  if (setting !== 'auto') {
    const test = await testProvider(setting);
    if (test.passed) return { provider: setting, tests: [test] };
    throw unusable([test]);
  }
  const tests: SelfTest[] = [];
  for (const candidate of providersHere()) {
    tests.push(candidate === 'cpu' ? await testProvider(candidate) : await testProviderApart(candidate));
  }
  const passed = tests.filter((test) => test.passed);
  if (passed.length === 0) throw unusable(tests);
  if (passed.length === 1 || tryModel === null) return { provider: passed[0]!.provider, tests };
  return fastest(tests, tryModel);
}

/** Of the providers that passed, the one whose step is right and fastest. @throws RunError when none is right. */
export async function fastest(
  tests: readonly SelfTest[],
  tryModel: (provider: ExecutionProvider) => Promise<Trial>,
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
  if (best === null) throw unusable(tried);
  return { provider: best.provider, tests: tried };
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

function unusable(tests: readonly SelfTest[]): RunError {
  const reasons = tests.map((t) => `${t.provider}: ${t.detail}`).join('; ');
  return new RunError(`no execution provider is usable (${reasons}); see 'propel doctor', or set provider: cpu`);
}
