/** Which types each execution provider computes large products in, and which it gets. */
import type { ComputeType, DTypeSetting } from './compute-type.js';
import type { ExecutionProvider } from './session.js';

/** What a type is chosen by: the setting, and what the weights are stored in, asked for where `auto` takes that. */
export interface TypeChoice {
  readonly dtype: DTypeSetting;
  readonly stored: () => ComputeType;
}

/** The types that a provider has products in, float32 first. */
export const COMPUTE_TYPES: Readonly<Record<ExecutionProvider, readonly ComputeType[]>> = {
  cuda: ['float32', 'bfloat16', 'float16'],
  webgpu: ['float32', 'float16'],
  coreml: ['float32', 'float16'],
  dml: ['float32', 'float16'],
  cpu: ['float32'],
};

/** The type of a setting: `auto` is on cuda the weights' own, elsewhere float32. */
export function computeType({ dtype, stored }: TypeChoice, provider: ExecutionProvider): ComputeType {
  if (dtype !== 'auto') return dtype;
  return provider === 'cuda' ? stored() : 'float32';
}

/** Why a provider cannot have a setting, in one line; null when it can. */
export function typeRefusal(dtype: DTypeSetting, provider: ExecutionProvider): string | null {
  const types = COMPUTE_TYPES[provider];
  if (dtype === 'auto' || types.includes(dtype)) return null;
  return `${provider} computes in ${types.join(' and ')}, not in ${dtype}: set dtype: auto, or another provider`;
}
