/** Numbers as the narrower types of a safetensors file: rounded to the nearest, of two as near to the even one, as IEEE 754 has it. */
import type { TensorType } from './safetensors.js';

/** Little-endian bytes of float32 values stored as `type`. */
export function narrow(values: Float32Array, type: TensorType): Uint8Array {
  if (type === 'F32') return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const narrowed = type === 'BF16' ? toBfloat16(values) : Uint16Array.from(values, toHalf);
  return new Uint8Array(narrowed.buffer);
}

/** The upper half of each value's bits, with what is cut off rounded away. */
function toBfloat16(values: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, (word, i) => {
    // The upper bits alone could make an infinity of it.
    if (Number.isNaN(values[i]!)) return 0x7fc0;
    const half = 0x7fff + ((word >>> 16) & 1);
    return (word + half) >>> 16;
  });
}

/** From here on the nearest number of binary16 is infinity. */
const HALF_OVERFLOW = 65_520;

/** Number → IEEE 754 binary16. */
function toHalf(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= HALF_OVERFLOW) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  // In units of the last place a normal number is 1024 to 2047; a carry beyond that is the next exponent's 1024.
  return sign | (roundHalfToEven(size / 2 ** (exponent - 10)) + (exponent + 14) * 1024);
}

function roundHalfToEven(x: number): number {
  const floor = Math.floor(x);
  const above = x - floor;
  return above > 0.5 || (above === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
