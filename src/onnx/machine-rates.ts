/** How fast an execution provider multiplies here: a timing of a second or two, for estimates. */
import { Differentiable } from './differentiable.js';
import { dialectOf, floats, Session } from './session.js';
import type { ExecutionProvider, SessionSettings } from './session.js';

/** Width of the square matrix that is timed: 4 MiB a weight, as a decoder's are. */
const WIDTH = 1024;
/** Weights in a row, so that none is still in the cache when it is read again. */
const CHAIN = 16;
const SHORT = 200;
/** Rows of a product that all threads work at from start to end. */
const BUSY_ROWS = 16;
/** Seconds that one timing takes at least. */
const LEAST = 0.2;

export interface MachineRates {
  readonly provider: ExecutionProvider;
  readonly threads: number;
  /** Seconds for each parameter of linear maps applied to so many rows at once, by the rows. */
  readonly secondsPerParameter: ReadonlyMap<number, number>;
  /** Seconds an operator costs however small it is. */
  readonly secondsPerOperator: number;
  /** Processor time that the timing got of what its threads could have had: near 1 on cpu unless other programs were in the way. */
  readonly processorShare: number;
}

/** Time products with each number of rows. @throws whatever the provider does when it cannot run */
export async function measureMachine(
  provider: ExecutionProvider,
  threads: number,
  rows: readonly number[],
): Promise<MachineRates> {
  const settings = { provider, threads };
  const secondsPerOperator = (await timePass(tinyChain(provider), settings, 1)) / SHORT;
  const secondsPerParameter = new Map<number, number>();
  let busiest = 1;
  const chain = await Session.create(matrixChain(provider), settings);
  try {
    const weights = () => floats(new Float32Array(WIDTH * WIDTH).fill(1e-3), [WIDTH, WIDTH]);
    const feeds = Object.fromEntries(Array.from({ length: CHAIN }, (_, i) => [`w${i}`, weights()] as const));
    for (const count of new Set(rows)) {
      const x = floats(new Float32Array(count * WIDTH).fill(1), [count, WIDTH]);
      // Of a product that all threads work at, their own time is what it takes when no other program is in the way.
      const all = provider === 'cpu' && count >= BUSY_ROWS;
      const { elapsed, used } = await fastest(() => chain.run({ ...feeds, x }));
      if (all) busiest = Math.min(busiest, used / (elapsed * threads));
      const seconds = all ? Math.min(elapsed, used / threads) : elapsed;
      secondsPerParameter.set(count, Math.max(0, seconds - CHAIN * secondsPerOperator) / (CHAIN * WIDTH * WIDTH));
    }
  } finally {
    await chain.release();
  }
  return { provider, threads, secondsPerParameter, secondsPerOperator, processorShare: busiest };
}

/** x [rows, WIDTH] through CHAIN matrices. */
function matrixChain(provider: ExecutionProvider): Differentiable {
  const g = new Differentiable(dialectOf(provider));
  let x = g.input('x', ['rows', WIDTH]);
  for (let i = 0; i < CHAIN; i++) x = g.linear(x, g.input(`w${i}`, [WIDTH, WIDTH]));
  g.output(x, 'y');
  return g;
}

/** SHORT operators on one number. */
function tinyChain(provider: ExecutionProvider): Differentiable {
  const g = new Differentiable(dialectOf(provider));
  const x = g.input('x', [1, 1]);
  let y = x;
  for (let i = 0; i < SHORT; i++) y = g.add(y, x);
  g.output(y, 'y');
  return g;
}

async function timePass(graph: Differentiable, settings: SessionSettings, size: number): Promise<number> {
  const session = await Session.create(graph, settings);
  try {
    const x = floats(new Float32Array(size), [1, size]);
    return (await fastest(() => session.run({ x }))).elapsed;
  } finally {
    await session.release();
  }
}

/** Seconds of the fastest of a few runs, what else the machine does only slows them down; and of the processors in all runs' mean. */
async function fastest(run: () => Promise<unknown>): Promise<{ readonly elapsed: number; readonly used: number }> {
  let best = Infinity;
  let used = Infinity;
  let spent = 0;
  for (let runs = 0; runs < 2 || spent < LEAST; runs++) {
    const cpu = process.cpuUsage();
    const started = performance.now();
    await run();
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    best = Math.min(best, seconds);
    used = Math.min(used, (user + system) / 1e6);
    spent += seconds;
  }
  return { elapsed: best, used };
}
