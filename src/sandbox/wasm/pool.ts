/**
 * Worker threads that serve requests: started on demand, ended when a program runs past its time, replaced when they die.
 * A run past its time is repeated before it counts: when nothing else waits, and at most half the workers at once. It has the same time
 * again and no more, so a program without end costs two limits. Time is the thread's processor time since the program began, so that
 * a busy machine, or a process that was suspended, changes no outcome.
 */
import { Worker } from 'node:worker_threads';
import type { Snapshot } from './interpreter.js';
import type { FromWorker, Place, Reply, Request, ToWorker, WorkerJob } from './protocol.js';
import { threadMilliseconds } from './thread-clock.js';

/** Milliseconds beyond its limit that a request may take as long as its interpreter is not set up. */
const SETUP_GRACE_MS = 250;
/** By the clock on the wall a request may take this many times its limit before it counts as past it. */
const WALL_FACTOR = 100;
/** Milliseconds after which a request that has processor time left is looked at again. */
const LEAST_WAIT_MS = 20;
const START_TIMEOUT_MS = 30_000;
const MAX_START_FAILURES = 3;
/** A program is put to this many workers when they die under it. */
const MAX_DEATHS = 3;
/** A confirmation waits for an empty queue, but not longer than this. */
const CONFIRMATION_PATIENCE_MS = 30_000;
/** V8's own stack for the module's calls: with little, deep recursion in a program would end the whole process. */
const RESOURCE_LIMITS = { stackSizeMb: 64, maxOldGenerationSizeMb: 128 };

export type JobEnd =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'timeout' }
  /** Every worker that took the job died under it. */
  | { readonly kind: 'died'; readonly detail: string }
  /** No worker could be started, or the pool was closed. */
  | { readonly kind: 'unavailable'; readonly detail: string };

export interface Job {
  readonly request: Request;
  readonly place: Place;
  readonly module: WebAssembly.Module;
  readonly snapshot: Snapshot;
  readonly timeoutMs: number;
}

interface QueuedJob extends Job {
  readonly settle: (end: JobEnd) => void;
  deaths: number;
  confirming: boolean;
  queuedAt: number;
}

interface Handle {
  readonly worker: Worker;
  /** Its name for `threadMilliseconds`; null where the system does not tell. */
  readonly thread: string | null;
  /** Where it writes its processor time, in milliseconds, at which the program of its request began; 0 while it sets up. */
  readonly began: Float64Array;
  /** Modules and snapshots it holds already. */
  readonly known: Set<string>;
}

export class WorkerPool {
  readonly size: number;
  readonly #queue: QueuedJob[] = [];
  readonly #confirmations: QueuedJob[] = [];
  readonly #idle: Handle[] = [];
  readonly #alive = new Set<Handle>();
  #starting = 0;
  #startFailures = 0;
  #startError = '';
  #confirming = 0;
  #nextId = 1;
  #closed = false;

  readonly #spawn: (job: WorkerJob) => Worker;

  constructor(size: number, spawn: (job: WorkerJob) => Worker = spawnWorker) {
    this.size = size;
    this.#spawn = spawn;
  }

  submit(job: Job): Promise<JobEnd> {
    return new Promise((settle) => {
      if (this.#closed) return settle({ kind: 'unavailable', detail: 'the sandbox is closed' });
      this.#queue.push({ ...job, settle, deaths: 0, confirming: false, queuedAt: performance.now() });
      return this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#failQueued('the sandbox is closed');
    await Promise.all([...this.#alive].map(({ worker }) => worker.terminate()));
  }

  #dispatch(): void {
    while (!this.#closed) {
      const job = this.#next();
      if (job === null) return;
      const handle = this.#idle.pop();
      if (handle === undefined) return this.#grow();
      this.#take(job);
      this.#runOn(handle, job);
    }
  }

  /** Starts one worker more for what waits, unless starting keeps failing: then the living go on alone, or all waiting jobs fail. */
  #grow(): void {
    if (this.#startFailures >= MAX_START_FAILURES) {
      if (this.#alive.size + this.#starting > 0) return;
      this.#startFailures = 0;
      return this.#failQueued(`no worker could be started: ${this.#startError}`);
    }
    const waiting = this.#queue.length + this.#confirmations.length;
    if (this.#alive.size + this.#starting < this.size && this.#starting < waiting) void this.#start();
  }

  /** The job whose turn it is, left in its queue. */
  #next(): QueuedJob | null {
    const confirmation = this.#confirmations[0];
    if (confirmation !== undefined && this.#confirming < Math.max(1, this.size >> 1)) {
      const waited = performance.now() - confirmation.queuedAt;
      if (this.#queue.length === 0 || waited > CONFIRMATION_PATIENCE_MS) return confirmation;
    }
    return this.#queue[0] ?? null;
  }

  #take(job: QueuedJob): void {
    (job.confirming ? this.#confirmations : this.#queue).shift();
    if (job.confirming) this.#confirming++;
  }

  #runOn(handle: Handle, job: QueuedJob): void {
    const { worker } = handle;
    const id = this.#nextId++;
    worker.ref();
    const started = performance.now();
    handle.began[0] = 0;
    const usedBefore = threadMilliseconds(handle.thread);
    /** Processor time since the program began, or since the request was taken; without such a clock, null. */
    const used = (): number | null => {
      const now = usedBefore === null ? null : threadMilliseconds(handle.thread);
      return now === null ? null : now - Math.max(usedBefore!, handle.began[0]!);
    };
    let timer: NodeJS.Timeout | NodeJS.Immediate;
    const finish = (): void => {
      clearTimeout(timer as NodeJS.Timeout);
      clearImmediate(timer as NodeJS.Immediate);
      worker.off('message', onMessage);
      worker.off('exit', onExit);
      worker.off('error', onError);
      if (job.confirming) this.#confirming--;
    };
    const onMessage = (message: FromWorker): void => {
      if (message.kind !== 'reply' || message.id !== id) return;
      finish();
      if (message.worn) this.#discard(handle);
      else this.#release(handle);
      if (message.reply.milliseconds > job.timeoutMs && (used() ?? message.reply.milliseconds) > job.timeoutMs)
        this.#timedOut(job);
      else job.settle({ kind: 'reply', reply: message.reply });
      this.#dispatch();
    };
    let cause = 'it ended by itself';
    const onError = (error: Error): void => {
      cause = error.message;
    };
    const onExit = (): void => {
      finish();
      this.#alive.delete(handle);
      this.#died(job, cause);
      this.#dispatch();
    };
    const onTimeout = (): void => {
      finish();
      this.#discard(handle);
      this.#timedOut(job);
      this.#dispatch();
    };
    worker.on('message', onMessage);
    worker.on('error', onError);
    worker.once('exit', onExit);
    const look = (): void => {
      const limit = job.timeoutMs + (handle.began[0]! > 0 ? 0 : SETUP_GRACE_MS);
      const elapsed = performance.now() - started;
      const left = limit - (used() ?? elapsed);
      const isStuck = elapsed > WALL_FACTOR * limit;
      if (left > 0 && !isStuck) timer = setTimeout(look, Math.max(left, LEAST_WAIT_MS));
      // Where this thread was busy the reply may lie here already: let it win over the timer.
      else timer = setImmediate(onTimeout);
    };
    timer = setTimeout(look, job.timeoutMs);
    worker.postMessage(this.#message(handle, id, job));
  }

  #message(handle: Handle, id: number, job: Job): ToWorker {
    const { request, place } = job;
    const isNew = (key: string): boolean => !handle.known.has(key) && handle.known.add(key).has(key);
    return {
      id,
      request,
      place,
      ...(isNew(`module ${place.memoryPages}`) ? { module: job.module } : {}),
      ...(isNew(`snapshot ${place.variant}`) ? { snapshot: job.snapshot } : {}),
    };
  }

  #timedOut(job: QueuedJob): void {
    if (job.confirming || this.#closed) return job.settle({ kind: 'timeout' });
    this.#confirmations.push({ ...job, confirming: true, queuedAt: performance.now() });
  }

  #died(job: QueuedJob, detail: string): void {
    if (this.#closed) return job.settle({ kind: 'unavailable', detail: 'the sandbox is closed' });
    job.deaths++;
    if (job.deaths >= MAX_DEATHS) return job.settle({ kind: 'died', detail });
    (job.confirming ? this.#confirmations : this.#queue).unshift(job);
  }

  async #start(): Promise<void> {
    this.#starting++;
    try {
      const worker = this.#spawn({ job: 'serve' });
      const { thread, began } = await firstMessage<Extract<FromWorker, { kind: 'ready' }>>(worker);
      const handle: Handle = { worker, thread, began, known: new Set() };
      this.#startFailures = 0;
      if (this.#closed) {
        await worker.terminate();
        return;
      }
      this.#alive.add(handle);
      // Without a listener an error would end the process; 'exit' follows and tells.
      handle.worker.on('error', () => {});
      handle.worker.once('exit', () => this.#forget(handle));
      this.#release(handle);
    } catch (error) {
      this.#startFailures++;
      this.#startError = (error as Error).message;
    } finally {
      this.#starting--;
      this.#dispatch();
    }
  }

  #release(handle: Handle): void {
    // An idle worker keeps no process alive.
    handle.worker.unref();
    this.#idle.push(handle);
  }

  #forget(handle: Handle): void {
    this.#alive.delete(handle);
    const at = this.#idle.indexOf(handle);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #discard(handle: Handle): void {
    this.#forget(handle);
    void handle.worker.terminate();
  }

  #failQueued(detail: string): void {
    for (const job of [...this.#queue.splice(0), ...this.#confirmations.splice(0)]) {
      job.settle({ kind: 'unavailable', detail });
    }
  }
}

/** Boots a snapshot in a worker of its own. Throws when CPython does not come up. */
export async function bootInWorker(job: Extract<WorkerJob, { job: 'boot' }>): Promise<Snapshot> {
  const worker = spawnWorker(job);
  try {
    return await firstMessage<Snapshot>(worker);
  } finally {
    await worker.terminate();
  }
}

function spawnWorker(job: WorkerJob): Worker {
  return new Worker(workerUrl(), { workerData: job, env: {}, execArgv: [], resourceLimits: RESOURCE_LIMITS });
}

/** Worker threads need compiled files: run from source, as tests do, they come from the last build. */
function workerUrl(): URL {
  const here = import.meta.url;
  return here.endsWith('.ts') ? new URL('../../../dist/sandbox/wasm/worker.js', here) : new URL('./worker.js', here);
}

function firstMessage<Message>(worker: Worker): Promise<Message> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      void worker.terminate();
      reject(new Error(`it was not ready after ${START_TIMEOUT_MS / 1000} s`));
    }, START_TIMEOUT_MS);
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      worker.off('error', onError);
      worker.off('exit', onExit);
      settle();
    };
    const onError = (error: Error): void => end(() => reject(error));
    const onExit = (code: number): void => end(() => reject(new Error(`it ended with exit code ${code}`)));
    worker.once('message', (message: Message) => end(() => resolve(message)));
    worker.once('error', onError);
    worker.once('exit', onExit);
  });
}
