/** Which type each provider computes a model's large products in. */
import { describe, expect, it } from 'vitest';
import { DTYPE_SETTINGS, inType, TYPE_TOLERANCE } from './compute-type.js';
import { computeType, typeRefusal } from './provider-types.js';
import { EXECUTION_PROVIDERS } from './session.js';

const stored = () => 'bfloat16' as const;

describe('computeType', () => {
  it('auto is the weights’ own on cuda, and float32 elsewhere', () => {
    const auto = EXECUTION_PROVIDERS.map((provider) => computeType({ dtype: 'auto', stored }, provider));
    expect(auto).toEqual(['bfloat16', 'float32', 'float32', 'float32', 'float32']);
  });

  it('is what is asked for, without a look at the weights', () => {
    const never = () => {
      throw new Error('asked');
    };
    expect(computeType({ dtype: 'float16', stored: never }, 'cuda')).toBe('float16');
    expect(computeType({ dtype: 'auto', stored: never }, 'cpu')).toBe('float32');
  });
});

describe('typeRefusal', () => {
  it('refuses bfloat16 but on cuda, float16 on cpu, nothing else', () => {
    const refused = EXECUTION_PROVIDERS.flatMap((provider) =>
      DTYPE_SETTINGS.filter((dtype) => typeRefusal(dtype, provider) !== null).map((dtype) => `${provider} ${dtype}`),
    );
    expect(refused).toEqual(['webgpu bfloat16', 'coreml bfloat16', 'dml bfloat16', 'cpu bfloat16', 'cpu float16']);
  });
});

it('a tolerance is 1e-3, 0.25 or 0.03: 64 roundings of the narrow types', () => {
  expect(TYPE_TOLERANCE).toEqual({ float32: 1e-3, bfloat16: 0.25, float16: 0.03125 });
});

it('what is said of a type names it, unless it is float32', () => {
  expect([inType('float32', 'right'), inType('bfloat16', 'right')]).toEqual(['right', 'in bfloat16: right']);
});
