import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UserError } from '../errors.js';
import { freshState } from '../lm/trainer.js';
import { ADAPTER_FILE, dropOptimiserState, readTrainingCheckpoint, writeTrainingCheckpoint } from './checkpoint.js';

const MODULE = 'model.layers.0.self_attn.q_proj';
const state = freshState(
  new Map([
    [`${MODULE}.lora_A`, { shape: [1, 2], data: Float32Array.of(1, 2) }],
    [`${MODULE}.lora_B`, { shape: [2, 1], data: Float32Array.of(3, 4) }],
  ]),
);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'propel-checkpoint-'));
  writeTrainingCheckpoint(folder, state, { rank: 1, alpha: 2, targets: ['q_proj'] }, 'base');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a training checkpoint', () => {
  it('gives back what was written', () => {
    const read = readTrainingCheckpoint(folder);
    expect(read.step).toBe(0);
    expect(Object.fromEntries(read.tensors)).toEqual(Object.fromEntries(state.tensors));
  });

  it('is not gone on from where one bit of it has changed', () => {
    const file = join(folder, 'optimizer.safetensors');
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 0x40;
    writeFileSync(file, bytes);
    expect(() => readTrainingCheckpoint(folder)).toThrow(UserError);
    expect(() => readTrainingCheckpoint(folder)).toThrow(/optimizer\.safetensors is not the file that the run wrote$/);
  });

  it('keeps its adapter when a later one replaces it', () => {
    dropOptimiserState(folder);
    expect(readdirSync(folder).sort()).toEqual(['adapter_config.json', ADAPTER_FILE]);
    expect(() => readTrainingCheckpoint(folder)).toThrow(/optimizer\.safetensors cannot be read/);
  });
});
