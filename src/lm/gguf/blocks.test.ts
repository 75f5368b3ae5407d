/** Every way of storing weights against ggml's Python package: fixtures made by `scripts/fixtures/gguf_blocks.py`. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { BLOCKS, dequantise } from './blocks.js';
import type { QuantType } from './blocks.js';

type Fixture = Readonly<Record<QuantType, { readonly bytes: string; readonly weights: string }>>;
const PEER = JSON.parse(readFileSync(new URL('../fixtures/gguf-blocks.json', import.meta.url), 'utf8')) as Fixture;

describe('blocks', () => {
  it.each(Object.keys(BLOCKS) as QuantType[])('of %s are the weights that ggml makes of them, to the bit', (type) => {
    const bytes = Buffer.from(PEER[type].bytes, 'base64');
    const weights = dequantise(bytes, type);
    expect(weights.length).toBeGreaterThan(100);
    expect(Buffer.from(weights.buffer).toString('base64')).toBe(PEER[type].weights);
  });
});
