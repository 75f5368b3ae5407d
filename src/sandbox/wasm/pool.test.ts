/** The pool's promises, with stand-ins for its workers: what happens when they hang, die or never start. */
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { WorkerPool, type Job } from './pool.js';

/** A worker whose behaviour on each message is the given code; `n` is shared by all workers and counts messages. */
function stand(onMessage: string, thread = 'null'): { spawn: () => Worker; spawned: () => number } {
  const counter = new Int32Array(new SharedArrayBuffer(4));
  let spawned = 0;
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    const reply = (id, milliseconds = 1, worn = false) =>
      parentPort.postMessage({ kind: 'reply', id, worn, reply: { kind: 'literals', literals: [String(id)], milliseconds } });
    parentPort.on('message', ({ id }) => { const n = Atomics.add(workerData, 0, 1) + 1; ${onMessage} });
    const began = new Float64Array(new SharedArrayBuffer(8));
    const now = (thread) => Number(require('node:fs').readFileSync('/proc/' + thread + '/schedstat', 'utf8').split(' ')[0]) / 1e6;
    const begin = () => { began[0] = now(${thread}); };
    parentPort.postMessage({ kind: 'ready', thread: ${thread}, began });`;
  const spawn = (): Worker => {
    spawned++;
    return new Worker(code, { eval: true, workerData: counter });
  };
  return { spawn, spawned: () => spawned };
}

const JOB: Job = {
  request: { kind: 'literals', texts: [] },
  place: { variant: 0, memoryPages: 1 },
  module: new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
  snapshot: {
    memory: new SharedArrayBuffer(1),
    stackPointer: 0,
    recursionAt: 0,
    variant: { hashSeed: 0, entropySeed: 0, epochMs: 0, addressShift: 0 },
  },
  timeoutMs: 50,
};

let pool: WorkerPool;
afterEach(() => pool.close());

describe('WorkerPool', () => {
  it('starts workers on demand, not more than its size, and reuses them', async () => {
    const { spawn, spawned } = stand('reply(id)');
    pool = new WorkerPool(2, spawn);
    const ends = await Promise.all(Array.from({ length: 9 }, () => pool.submit(JOB)));
    expect(ends.map(({ kind }) => kind)).toEqual(Array(9).fill('reply'));
    expect(spawned()).toBe(2);
  });

  it('repeats a run past its time, and believes the second', async () => {
    const { spawn, spawned } = stand('if (n === 1) while (true); else reply(id)');
    pool = new WorkerPool(1, spawn);
    expect((await pool.submit(JOB)).kind).toBe('reply');
    expect(spawned()).toBe(2);
  });

  it('says timeout after two', async () => {
    pool = new WorkerPool(1, stand('while (true);').spawn);
    expect(await pool.submit(JOB)).toEqual({ kind: 'timeout' });
  });

  describe.skipIf(process.platform !== 'linux')('with a clock of processor time', () => {
    const thread = "require('node:fs').readlinkSync('/proc/thread-self')";
    const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900)';

    it('lets a run end that was kept from the processor', async () => {
      const { spawn, spawned } = stand(`${wait}; reply(id, 900)`, thread);
      pool = new WorkerPool(1, spawn);
      expect((await pool.submit(JOB)).kind).toBe('reply');
      expect(spawned()).toBe(1);
    });

    it('ends a run that used its time, and another', async () => {
      const { spawn, spawned } = stand('while (true);', thread);
      pool = new WorkerPool(1, spawn);
      expect(await pool.submit(JOB)).toEqual({ kind: 'timeout' });
      expect(spawned()).toBeGreaterThanOrEqual(2);
    });

    const burn = (milliseconds: number): string =>
      `{ const until = now(${thread}) + ${milliseconds}; while (now(${thread}) < until); }`;

    it('gives a repeated run no more time than the first', async () => {
      const { spawn, spawned } = stand(`begin(); ${burn(420)}; reply(id, 420)`, thread);
      pool = new WorkerPool(1, spawn);
      expect(await pool.submit({ ...JOB, timeoutMs: 300 })).toEqual({ kind: 'timeout' });
      expect(spawned()).toBeGreaterThanOrEqual(2);
    });

    it('counts from where the program begins, not what its interpreter took before', async () => {
      const { spawn, spawned } = stand(`${burn(200)}; begin(); reply(id, 200)`, thread);
      pool = new WorkerPool(1, spawn);
      expect((await pool.submit({ ...JOB, timeoutMs: 100 })).kind).toBe('reply');
      expect(spawned()).toBe(1);
    });

    it('ends a program at its limit, without the time that setting up may take', async () => {
      const { spawn } = stand(`begin(); while (true);`, thread);
      pool = new WorkerPool(1, spawn);
      const started = process.cpuUsage();
      expect(await pool.submit({ ...JOB, timeoutMs: 1000 })).toEqual({ kind: 'timeout' });
      // Two runs of a second, two workers started: four limits would be four seconds.
      expect(process.cpuUsage(started).user / 1e6).toBeLessThan(3);
    });

    it('counts a late reply by the time it used', async () => {
      const used = "Number(require('node:fs').readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0])";
      const { spawn } = stand(`const until = ${used} + 200e6; while (${used} < until); reply(id, 200)`, thread);
      pool = new WorkerPool(1, spawn);
      expect(await pool.submit(JOB)).toEqual({ kind: 'timeout' });
    });
  });

  it("takes a reply whose worker's own clock says too long for a timeout", async () => {
    pool = new WorkerPool(1, stand('reply(id, 51)').spawn);
    expect(await pool.submit(JOB)).toEqual({ kind: 'timeout' });
  });

  it('takes a reply that waited while this thread was busy', async () => {
    const { spawn } = stand('reply(id)');
    pool = new WorkerPool(1, spawn);
    await pool.submit(JOB);
    const end = pool.submit(JOB);
    const until = performance.now() + 500;
    while (performance.now() < until);
    expect((await end).kind).toBe('reply');
  });

  it('confirms after what waits in the queue', async () => {
    pool = new WorkerPool(1, stand('if (n === 1) while (true); else reply(id)').spawn);
    const order: string[] = [];
    const record = (name: string) => pool.submit(JOB).then(() => order.push(name));
    await Promise.all([record('slow'), record('second'), record('third')]);
    expect(order).toEqual(['second', 'third', 'slow']);
  });

  it('puts a program to three workers when they die, then says so', async () => {
    const { spawn, spawned } = stand('process.exit(3)');
    pool = new WorkerPool(1, spawn);
    expect((await pool.submit(JOB)).kind).toBe('died');
    expect(spawned()).toBe(3);
  });

  it('survives a worker that dies once', async () => {
    pool = new WorkerPool(1, stand('if (n === 1) process.exit(3); else reply(id)').spawn);
    expect((await pool.submit(JOB)).kind).toBe('reply');
  });

  it('gives up after three workers that do not start, and tries again for the next job', async () => {
    let spawned = 0;
    pool = new WorkerPool(2, () => {
      spawned++;
      return new Worker('throw new Error("no room")', { eval: true });
    });
    expect(await pool.submit(JOB)).toEqual({ kind: 'unavailable', detail: 'no worker could be started: no room' });
    expect(spawned).toBe(3);
    expect((await pool.submit(JOB)).kind).toBe('unavailable');
    expect(spawned).toBe(6);
  });

  it('replaces a worn worker', async () => {
    const { spawn, spawned } = stand('reply(id, 1, true)');
    pool = new WorkerPool(1, spawn);
    await pool.submit(JOB);
    await pool.submit(JOB);
    expect(spawned()).toBe(2);
  });

  it('ends what runs and what waits when closed', async () => {
    pool = new WorkerPool(1, stand('').spawn);
    const ends = [pool.submit({ ...JOB, timeoutMs: 10_000 }), pool.submit(JOB)];
    await new Promise((resolve) => setTimeout(resolve, 100));
    await pool.close();
    const closed = { kind: 'unavailable', detail: 'the sandbox is closed' };
    expect(await Promise.all(ends)).toEqual([closed, closed]);
    expect(await pool.submit(JOB)).toEqual(closed);
  });
});
