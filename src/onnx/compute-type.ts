/** The type that a model's large products are computed in: every linear map and the LM head. All else is float32. */
import type { ExecutionProvider } from './session.js';

export const DTYPE_SETTINGS = ['auto', 'float32', 'bfloat16', 'float16'] as const;
export type DTypeSetting = (typeof DTYPE_SETTINGS)[number];
export type ComputeType = Exclude<DTypeSetting, 'auto'>;

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

/** Largest error that is the type's own, relative to the largest value. */
export const TYPE_TOLERANCE: Readonly<Record<ComputeType, number>> = {
  float32: 1e-3,
  // 64 roundings to nearest, of 2⁻⁸ with 8 significant bits and 2⁻¹¹ with 11: a logit of 20 alone is rounded by as much as 20 of them,
  // and rounded layers are behind it. What is wrong is wrong by far more.
  bfloat16: 64 * 2 ** -8,
  float16: 64 * 2 ** -11,
};

/** `what`, said to be of a type where that is not the usual float32. */
export function inType(type: ComputeType, what: string): string {
  return type === 'float32' ? what : `in ${type}: ${what}`;
}
