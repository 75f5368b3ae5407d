/** The attack cases against the WASM sandbox: each outcome, and that the next program on the same worker is unaffected. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ESCAPE_CASES, WITNESS } from '../escape-cases.js';
import { EXHAUSTION_CASES } from '../exhaustion-cases.js';
import { HOST_CASES } from '../host-cases.js';
import { IMPORT_CASES } from '../import-cases.js';
import type { Sandbox } from '../sandbox.js';
import { selfTest } from '../self-test.js';
import { createWasmSandbox } from './wasm-sandbox.js';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createWasmSandbox({ size: 1, limits: { memoryMiB: 128 } });
});
afterAll(() => sandbox.close());

describe('an attack gets its outcome and leaves nothing behind', () => {
  it.each([...EXHAUSTION_CASES, ...ESCAPE_CASES, ...IMPORT_CASES, ...HOST_CASES])('$name', async (attack) => {
    expect(await selfTest(sandbox, [attack])).toMatchObject([{ name: attack.name, ok: true, detail: '' }]);
    expect(await selfTest(sandbox, [WITNESS])).toMatchObject([{ name: WITNESS.name, ok: true, detail: '' }]);
  });
});
