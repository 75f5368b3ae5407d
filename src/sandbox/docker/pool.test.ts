/** The pool's promises, with stand-ins for its containers: what happens when they hang, die or never start. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Container } from './container.js';
import { ContainerPool, type Job, type JobEnd, type PoolOptions } from './pool.js';

type Answer = (stand: Stand, id: number, body: string) => void;

/** A container whose supervisor does what a test says. */
class Stand {
  readonly requests: { kind: string; id: number }[] = [];
  onFrame: Container['onFrame'] = () => {};
  onEnd: Container['onEnd'] = () => {};
  onDrain = (): void => {};
  removed = false;
  held = false;
  readonly #answer: Answer;

  constructor(answer: Answer) {
    this.#answer = answer;
  }
  send(kind: string, header: { readonly id: number }, body?: Buffer): boolean {
    this.requests.push({ kind, id: header.id });
    if (kind === 'run') setImmediate(() => this.#answer(this, header.id, String(body)));
    return true;
  }
  start(id: number): void {
    this.onFrame({ kind: 'start', header: { id }, body: Buffer.alloc(0) });
  }
  done(id: number, end = 'returned'): void {
    this.onFrame({ kind: 'done', header: { id, end, leftOver: 0 }, body: Buffer.from(String(id)) });
  }
  hold(isHeld: boolean): void {
    this.held = isHeld;
  }
  async remove(): Promise<void> {
    this.removed = true;
  }
}

const serve = (stand: Stand, id: number): void => {
  stand.start(id);
  stand.done(id);
};
const JOB: Job = { header: { timeoutMs: 10 }, body: Buffer.alloc(0) };

let pool: ContainerPool;
afterEach(() => pool.close());

/** A pool whose n-th container (from 0) answers as `answers(n)` does. */
function open(answers: (n: number) => Answer, options: Partial<PoolOptions> = {}): Stand[] {
  const stands: Stand[] = [];
  pool = new ContainerPool({
    size: 1,
    pauses: [1, 1],
    start: async () => {
      const stand = new Stand(answers(stands.length));
      stands.push(stand);
      return { container: stand as unknown as Container, hello: { python: '3' } };
    },
    ...options,
  });
  return stands;
}

const kinds = (ends: readonly JobEnd[]): string[] => ends.map(({ kind }) => kind);
const several = (count: number): Promise<JobEnd[]> =>
  Promise.all(Array.from({ length: count }, () => pool.submit(JOB)));

describe('ContainerPool', () => {
  it('has no more containers than its size, and reuses them', async () => {
    const stands = open(() => serve, { size: 2 });
    expect(kinds(await several(20))).toEqual(Array(20).fill('done'));
    expect(stands).toHaveLength(2);
    expect(pool.statistics).toMatchObject({ containers: 2, served: 20, lost: 0, repeated: 0 });
  });

  it('gives a container one request beyond the one that runs', async () => {
    const stands = open(() => () => {});
    await pool.warmUp();
    void several(5);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(stands[0]!.requests).toHaveLength(2);
  });

  it('repeats what was at a container that is killed, in its old order', async () => {
    const order: number[] = [];
    open((n) => (stand, id) => {
      if (n === 0 && id === 1) {
        stand.start(id);
        setImmediate(() => stand.onEnd(null));
      } else if (n > 0) serve(stand, id);
    });
    const jobs = [0, 1, 2, 3].map((index) => pool.submit(JOB).then(() => order.push(index)));
    await Promise.all(jobs);
    expect(order).toEqual([0, 1, 2, 3]);
    expect(pool.statistics).toMatchObject({ lost: 1, repeated: 2, served: 4 });
  });

  it('blames nobody for containers that are killed from outside', async () => {
    open((n) => (stand, id) => {
      stand.start(id);
      if (n < 10) stand.onEnd(null);
      else stand.done(id);
    });
    expect((await pool.submit(JOB)).kind).toBe('done');
    expect(pool.statistics.lost).toBe(10);
  });

  it('says so when they keep being killed', async () => {
    open(() => (stand, id) => {
      stand.start(id);
      stand.onEnd(null);
    });
    const detail = 'its container was ended from outside 20 times';
    expect(await pool.submit(JOB)).toEqual({ kind: 'unavailable', detail });
  });

  it('blames the program under which three supervisors gave up, and not the one that waited', async () => {
    const why = 'processes of a program could not be ended';
    open(() => (stand, id, body) => {
      stand.start(id);
      if (body === 'guilty') stand.onEnd(why);
      else stand.done(id);
    });
    const jobs = ['guilty', 'innocent', 'guilty', 'innocent'].map((body) =>
      pool.submit({ ...JOB, body: Buffer.from(body) }),
    );
    const died = { kind: 'died', detail: why };
    const done = expect.objectContaining({ kind: 'done' });
    expect(await Promise.all(jobs)).toEqual([died, done, died, done]);
    expect(pool.statistics.lost).toBe(6);
  });

  it('gives up a container that does not answer after its request has started', async () => {
    open((n) => (stand, id) => (n === 0 ? stand.start(id) : serve(stand, id)), { graceMs: -9990 });
    expect((await pool.submit(JOB)).kind).toBe('done');
    expect(pool.statistics.lost).toBe(1);
  });

  it('settles once, whatever comes after', async () => {
    const stands = open(() => (stand, id) => {
      serve(stand, id);
      stand.done(id);
      stand.done(999);
    });
    expect(kinds(await several(3))).toEqual(['done', 'done', 'done']);
    expect(pool.statistics.served).toBe(3);
    expect(stands).toHaveLength(1);
  });

  it('repeats a run past its time when nothing else waits, and believes the second', async () => {
    const order: string[] = [];
    open(() => (stand, id) => {
      stand.start(id);
      stand.done(id, id === 1 ? 'timeout' : 'returned');
    });
    const record = async (name: string): Promise<void> => {
      const { kind } = await pool.submit(JOB);
      order.push(`${name} ${kind}`);
    };
    await Promise.all([record('slow'), record('second'), record('third')]);
    expect(order).toEqual(['second done', 'third done', 'slow done']);
  });

  it('says timeout after two', async () => {
    open(() => (stand, id) => {
      stand.start(id);
      stand.done(id, 'timeout');
    });
    expect(await pool.submit(JOB)).toEqual({ kind: 'timeout' });
  });

  it('gives up when no container starts, and tries again for the next request', async () => {
    let tries = 0;
    pool = new ContainerPool({
      size: 2,
      pauses: [1, 1],
      start: async () => {
        tries++;
        throw new Error('no room');
      },
    });
    const unavailable = { kind: 'unavailable', detail: 'no container could be started: no room' };
    expect(await pool.submit(JOB)).toEqual(unavailable);
    expect(tries).toBe(6);
    expect(await pool.submit(JOB)).toEqual(unavailable);
    expect(tries).toBe(12);
  });

  it('replaces a container that has served its time', async () => {
    const stands = open(() => serve, { recycleAfter: 3 });
    await several(7);
    expect(stands.map(({ removed }) => removed)).toEqual([true, true, false]);
    expect(pool.statistics).toMatchObject({ recycled: 2, lost: 0, repeated: 0 });
  });

  it('replaces an idle container that gives no sign of life', async () => {
    const stands = open(() => serve, { pingEveryMs: 20, pongWithinMs: 10 });
    await pool.submit(JOB);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(stands[0]!.removed).toBe(true);
    expect(pool.statistics.containers).toBe(1);
  });

  it('waits for a stream that is full', async () => {
    const stands = open(() => serve);
    await pool.warmUp();
    const [stand] = stands;
    stand!.send = () => false;
    void several(3);
    const requests: number[] = [];
    stand!.send = (_kind, { id }) => {
      requests.push(id);
      return false;
    };
    stand!.onDrain();
    stand!.onDrain();
    expect(requests).toHaveLength(1);
  });

  it('keeps the process alive only while a request runs', async () => {
    const stands = open(() => (stand, id) => {
      expect(stand.held).toBe(true);
      serve(stand, id);
    });
    await pool.submit(JOB);
    expect(stands[0]!.held).toBe(false);
  });

  it('ends what runs and what waits when closed', async () => {
    const stands = open(() => () => {});
    await pool.warmUp();
    const ends = several(4);
    await pool.close();
    const closed = { kind: 'unavailable', detail: 'the sandbox is closed' };
    expect(await ends).toEqual([closed, closed, closed, closed]);
    expect(await pool.submit(JOB)).toEqual(closed);
    expect(stands.map(({ removed }) => removed)).toEqual([true]);
  });
});
