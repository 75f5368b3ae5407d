/** Sizes as people write them. */
import { describe, expect, it } from 'vitest';
import { ENGINE_MEMORY, engineMemory, memorySize, sizeText } from './memory-size.js';

describe('a size', () => {
  it('is a number of decimal or binary units', () => {
    expect(['24GB', '1.5 GiB', '300MB', '2MiB'].map(memorySize)).toEqual([24e9, 1.5 * 2 ** 30, 3e8, 2 ** 21]);
    expect(['80gb', '80Gi', '80G', '1TiB'].map(memorySize)).toEqual([80e9, 80 * 2 ** 30, 80e9, 2 ** 40]);
  });
  it('is nothing else', () => {
    expect(['24', 'GB', '-1GB', '0GiB', '0.0GB', '24kB', 'auto'].map(memorySize)).toEqual(Array(7).fill(null));
  });
  it('is shown in MiB or GiB', () => {
    expect([1.5 * 2 ** 20, 24 * 2 ** 30].map(sizeText)).toEqual(['1.5 MiB', '24.0 GiB']);
  });
});

describe('engine.memory', () => {
  it('is a setting, or a budget under which models are planned as with auto', () => {
    expect(engineMemory({ memory: 'small' })).toEqual({ setting: 'small', budget: null });
    expect(engineMemory({ memory: '24GB' })).toEqual({ setting: 'auto', budget: 24e9 });
    expect(['auto', 'fast', 'small', '24GB', '1.5 GiB'].every((text) => ENGINE_MEMORY.test(text))).toBe(true);
    expect(['', 'tiny', '24', '0GB', 'auto 24GB'].some((text) => ENGINE_MEMORY.test(text))).toBe(false);
  });
});
