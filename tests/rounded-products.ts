/**
 * Products in narrow types on the CPU, whose kernels are float32's: operands and results are rounded as a kernel of the type rounds them. Left to
 * itself ONNX Runtime widens such a product there, and drops the casts beside it.
 */
import { vi } from 'vitest';
import { Emitter } from '../src/onnx/emitter.js';

const plainGemm = Object.getOwnPropertyDescriptor(Emitter.prototype, 'emitGemm')!.value as Emitter['emitGemm'];

/** Have every product in a narrow type rounded, until mocks are restored. */
export function roundProducts(): void {
  vi.spyOn(Emitter.prototype, 'emitGemm').mockImplementation(function (this: Emitter, a, b, c, options) {
    if (a.dtype !== b.dtype) throw new Error(`a product of ${a.dtype} and ${b.dtype}`);
    if (a.dtype === 'float32') return plainGemm.call(this, a, b, c, options);
    const product = plainGemm.call(this, this.cast(a, 'float32'), this.cast(b, 'float32'), null, options);
    return this.cast(product, a.dtype);
  });
}
