/** The type that a model's large products are computed in: every linear map and the LM head. All else is float32. */

export const DTYPE_SETTINGS = ['auto', 'float32', 'bfloat16', 'float16'] as const;
export type DTypeSetting = (typeof DTYPE_SETTINGS)[number];
export type ComputeType = Exclude<DTypeSetting, 'auto'>;

/** Largest error that is the type's own, relative to the largest value. */
export const TYPE_TOLERANCE: Readonly<Record<ComputeType, number>> = {
  float32: 1e-3,
  // 64 roundings to nearest, of 2⁻⁸ with 8 significant bits and 2⁻¹¹ with 11: a logit of 20 alone is rounded by as much as 16 of them,
  // and rounded layers are behind it. What is wrong is wrong by far more.
  bfloat16: 64 * 2 ** -8,
  float16: 64 * 2 ** -11,
};

/** `what`, said to be of a type where that is not the usual float32. */
export function inType(type: ComputeType, what: string): string {
  return type === 'float32' ? what : `in ${type}: ${what}`;
}
