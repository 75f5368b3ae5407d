/** The first phase that reads a setting: what a run must start over from when it is changed. */
import type { Phase } from '../store/rows.js';
import { ensembleSize } from './config.js';
import type { Config } from './config.js';
import type { ModelHashes } from './model-folders.js';

/** Settings, and what is recorded beside them, that the labels do not depend on. */
const PHASE_OF: Readonly<Partial<Record<keyof Config | keyof ModelHashes, Phase>>> = {
  probe: 'train-probe',
  train: 'train-generator',
  arms: 'train-generator',
  policyHashes: 'train-generator',
  evaluate: 'evaluate',
};

/**
 * @param config the settings that are to be gone on with
 * @param probes how many are trained; 0 before that
 * @returns the phase, by a setting's dotted name
 */
export function phaseOfSetting(config: Config, probes: number): (setting: string) => Phase {
  const moreProbes = probes > 0 && ensembleSize(config) > probes;
  return (setting) => {
    const section = setting.split('.')[0]!;
    if (section === 'arms' && moreProbes) return 'train-probe';
    return Object.hasOwn(PHASE_OF, section) ? PHASE_OF[section as keyof typeof PHASE_OF]! : 'label';
  };
}
