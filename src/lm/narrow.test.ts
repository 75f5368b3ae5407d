/** Rounding to bfloat16 and binary16: hand-worked bit patterns. */
import { describe, expect, it } from 'vitest';
import { narrow } from './narrow.js';
import type { TensorType } from './safetensors.js';

/** The 16-bit patterns of values in a narrower type. */
function bits(type: TensorType, ...values: number[]): number[] {
  const bytes = narrow(Float32Array.from(values), type);
  return [...new Uint16Array(bytes.buffer, bytes.byteOffset, values.length)];
}

describe('bfloat16', () => {
  it('keeps the upper bits of what it can hold', () => {
    // 1 = 0x3f800000, −2 = 0xc0000000, 0.15625 = 0x3e200000
    expect(bits('BF16', 0, -0, 1, -2, 0.15625, Infinity)).toEqual([0, 0x8000, 0x3f80, 0xc000, 0x3e20, 0x7f80]);
  });

  it('rounds to the nearest, halves to even', () => {
    const ulp = 2 ** -7;
    // Of 1 + x ulp: below a half down, above up; 1/2 is between 0x3f80, even, and 0x3f81; 3/2 between 0x3f81 and 0x3f82.
    expect(bits('BF16', 1 + 0.49 * ulp, 1 + 0.51 * ulp, 1 + 0.5 * ulp, 1 + 1.5 * ulp)).toEqual([
      0x3f80, 0x3f81, 0x3f80, 0x3f82,
    ]);
  });

  it('keeps a NaN a NaN', () => {
    expect(bits('BF16', Number.NaN)).toEqual([0x7fc0]);
  });
});

describe('binary16', () => {
  it('has normal, subnormal and infinite numbers', () => {
    // 1 = 0x3c00; 65504 the largest; 2⁻¹⁴ the smallest normal; 2⁻²⁴ the smallest of all.
    expect(bits('F16', 0, 1, -2, 65_504, 2 ** -14, 2 ** -24, 70_000, -Infinity)).toEqual([
      0, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x7c00, 0xfc00,
    ]);
  });

  it('rounds to the nearest, halves to even, carries into the exponent', () => {
    const ulp = 2 ** -10;
    expect(bits('F16', 1 + 0.5 * ulp, 1 + 1.5 * ulp, 2 - 0.4 * ulp, 0.5 * 2 ** -24, 65_519, 65_520)).toEqual([
      0x3c00, 0x3c02, 0x4000, 0, 0x7bff, 0x7c00,
    ]);
  });
});

it('float32 stays as it is', () => {
  expect([...new Float32Array(narrow(Float32Array.of(0.1, -3), 'F32').buffer)]).toEqual([Math.fround(0.1), -3]);
});
