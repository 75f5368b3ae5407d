/** Choosing an execution provider: the setting names one, or `auto` takes the first that passes its self-test. */
import { RunError, UserError } from '../errors.js';
import { testProvider } from './self-test.js';
import type { SelfTest } from './self-test.js';
import type { ExecutionProvider } from './session.js';

export const PROVIDER_SETTINGS = ['auto', 'cuda', 'webgpu', 'cpu'] as const;
export type ProviderSetting = (typeof PROVIDER_SETTINGS)[number];

export interface ProviderChoice {
  readonly provider: ExecutionProvider;
  /** What was tried, in order, for the run's record and the user. */
  readonly tests: readonly SelfTest[];
}

/**
 * @throws UserError for a setting that is none.
 * @throws RunError when the provider that was named, or every one, fails its self-test.
 */
export async function chooseProvider(setting: ProviderSetting): Promise<ProviderChoice> {
  if (!PROVIDER_SETTINGS.includes(setting)) {
    throw new UserError(`provider '${setting}' is unknown; it is one of ${PROVIDER_SETTINGS.join(', ')}`);
  }
  const candidates: readonly ExecutionProvider[] = setting === 'auto' ? ['cuda', 'webgpu', 'cpu'] : [setting];
  const tests: SelfTest[] = [];
  for (const candidate of candidates) {
    const test = await testProvider(candidate);
    tests.push(test);
    if (test.passed) return { provider: candidate, tests };
  }
  const reasons = tests.map((t) => `${t.provider}: ${t.detail}`).join('; ');
  throw new RunError(`no execution provider is usable (${reasons}); see 'propel doctor', or set provider: cpu`);
}
