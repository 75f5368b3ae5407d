/** Reading where nodes ran out of ONNX Runtime's profile. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { Emitter } from './emitter.js';
import { countPlacements, readPlacements, unexpectedOnCpu } from './placements.js';
import { floats, Session } from './session.js';

const kernel = (node: string, operator: string, provider: string, output: Record<string, number[]>): unknown => ({
  cat: 'Node',
  name: `${node}_kernel_time`,
  args: { provider, op_name: operator, output_type_shape: [output] },
});

/** A profile in ONNX Runtime's form: what is asked for runs on WebGPU, the rest where it may or should not. */
const PROFILE = [
  { cat: 'Session', name: 'session_initialization', args: {} },
  kernel('shape', 'Shape', 'CPUExecutionProvider', { int64: [2] }),
  kernel('size', 'Sub', 'CPUExecutionProvider', { float: [] }),
  kernel('softmax', 'LogSoftmax', 'CPUExecutionProvider', { float: [6, 8] }),
  kernel('softmax', 'LogSoftmax', 'CPUExecutionProvider', { float: [6, 8] }),
  kernel('copy', 'MemcpyToHost', 'WebGpuExecutionProvider', { float: [6, 8] }),
  kernel('back', 'MemcpyFromHost', 'CPUExecutionProvider', { float: [6, 8] }),
  kernel('product', 'MatMul', 'WebGpuExecutionProvider', { float: [6, 8] }),
];

describe('placements', () => {
  const read = () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'session-0_2026-01-01_00-00-00_000.json'), JSON.stringify(PROFILE));
    return readPlacements(folder);
  };

  it('count each node once', () => {
    expect(Object.fromEntries(countPlacements(read()))).toEqual({
      CPUExecutionProvider: 4,
      WebGpuExecutionProvider: 2,
    });
  });

  it('are unexpected on the CPU where floating-point tensors are computed: not shapes, single numbers and copies', () => {
    expect(unexpectedOnCpu(read()).map(({ operator }) => operator)).toEqual(['LogSoftmax']);
  });

  it('of a session lie in its folder once it is released', async () => {
    const folder = temporaryFolder();
    const g = new Emitter('standard');
    g.output(g.emitSoftmax(g.input('x', [2, 3])), 'y');
    const session = await Session.create(g, { provider: 'cpu', threads: 1, profile: folder });
    await session.run({ x: floats(new Float32Array(6), [2, 3]) });
    await session.release();
    const [softmax] = readPlacements(folder);
    expect(softmax).toMatchObject({ operator: 'Softmax', provider: 'CPUExecutionProvider' });
    expect(softmax!.outputs).toEqual([{ type: 'float', shape: [2, 3] }]);
  });
});
