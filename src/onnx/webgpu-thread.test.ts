/** The claim of one thread on WebGPU. */
import { threadId } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { enterWebGpu, leaveWebGpu } from './webgpu-thread.js';

const CLAIM = 'PROPEL_WEBGPU_THREAD';

describe('WebGPU in a process', () => {
  afterEach(() => delete process.env[CLAIM]);

  it('is claimed with the first session and let go with the last', () => {
    enterWebGpu();
    enterWebGpu();
    leaveWebGpu();
    expect(process.env[CLAIM]).toBe(`${process.pid}/${threadId}`);
    leaveWebGpu();
    expect(process.env[CLAIM]).toBeUndefined();
  });

  it('is refused to a second thread in words, before ONNX Runtime would crash', () => {
    process.env[CLAIM] = `${process.pid}/${threadId + 1}`;
    expect(() => enterWebGpu()).toThrow(`thread ${threadId + 1} of this process already uses WebGPU`);
  });

  it('is not refused for the claim of a process that started this one', () => {
    process.env[CLAIM] = `${process.pid + 1}/0`;
    enterWebGpu();
    expect(process.env[CLAIM]).toBe(`${process.pid}/${threadId}`);
    leaveWebGpu();
  });
});
