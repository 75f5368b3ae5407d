/**
 * Containers that serve requests: replaced as they die, recycled as they age. A request is settled exactly once. What had not
 * started when its container died costs nothing; what had started is run again, and is blamed only when the container's own
 * supervisor gave up under it, time after time. A run past its time is repeated, when nothing else waits, before it counts.
 */
import type { Container, Hello } from './container.js';
import type { Frame } from './frames.js';

export interface Job {
  /** Of the supervisor's `run`, but for `id`. */
  readonly header: Readonly<Record<string, unknown>> & { readonly timeoutMs: number };
  readonly body: Buffer;
}

export type JobEnd =
  /** The supervisor's `done`. */
  | { readonly kind: 'done'; readonly frame: Frame }
  | { readonly kind: 'timeout' }
  /** Every supervisor that took the job gave up under it. */
  | { readonly kind: 'died'; readonly detail: string }
  /** No container could be started, they keep being killed, or the pool was closed. */
  | { readonly kind: 'unavailable'; readonly detail: string };

export interface PoolOptions {
  readonly size: number;
  /** Starts one container. */
  readonly start: () => Promise<{ readonly container: Container; readonly hello: Hello }>;
  /** Programs after which a container is replaced. Default 5000. */
  readonly recycleAfter?: number;
  /** Milliseconds between tries to start a container; as many tries as there are pauses, and one. */
  readonly pauses?: readonly number[];
  /** Milliseconds between signs of life of an idle container, and how long to wait for one. */
  readonly pingEveryMs?: number;
  readonly pongWithinMs?: number;
  /** Milliseconds beyond its limits after which a request that has started is given up with its container. */
  readonly graceMs?: number;
}

export interface PoolStatistics {
  readonly containers: number;
  readonly served: number;
  /** Containers that ended without being asked to. */
  readonly lost: number;
  readonly recycled: number;
  /** Requests that were put to another container. */
  readonly repeated: number;
  /** Processes that programs left behind. */
  readonly leftOver: number;
}

/** Requests at a container: one runs, the next is there when it ends. */
const DEPTH = 2;
/** A program is put to so many containers whose supervisor gives up under it. */
const MAX_DEATHS = 3;
/** And to so many that are killed from outside, which says nothing of the program. */
const MAX_LOSSES = 20;
const RECYCLE_AFTER = 5000;
/** A daemon that is restarted is back within half a minute. */
const START_PAUSES_MS = [250, 500, 1000, 2000, 4000, 8000, 8000, 8000];
const PING_EVERY_MS = 60_000;
const PONG_WITHIN_MS = 20_000;
/** See PREPARE_SECONDS and WALL_FACTOR in supervisor.py. */
const PREPARE_MS = 10_000;
const WALL_FACTOR = 4;
const GRACE_MS = 15_000;
/** A request that does not start: interpreters may have to, first. */
const START_TIMEOUT_MS = 90_000;
/** A confirmation waits for an empty queue, but not longer than this. */
const CONFIRMATION_PATIENCE_MS = 30_000;

interface QueuedJob extends Job {
  readonly settle: (end: JobEnd) => void;
  deaths: number;
  losses: number;
  confirming: boolean;
  queuedAt: number;
}

interface Member {
  readonly container: Container;
  readonly jobs: Map<number, QueuedJob>;
  /** The request that its supervisor said has started. */
  current: number | null;
  served: number;
  accepts: boolean;
  watchdog: NodeJS.Timeout | null;
  awaitsPong: boolean;
}

export class ContainerPool {
  readonly size: number;
  readonly #options: Required<PoolOptions>;
  readonly #queue: QueuedJob[] = [];
  readonly #confirmations: QueuedJob[] = [];
  readonly #members = new Set<Member>();
  readonly #removals = new Set<Promise<void>>();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #statistics = { served: 0, lost: 0, recycled: 0, repeated: 0, leftOver: 0 };
  #starting = 0;
  #confirming = 0;
  #nextId = 1;
  #closed = false;

  constructor(options: PoolOptions) {
    this.size = options.size;
    this.#options = {
      recycleAfter: RECYCLE_AFTER,
      pauses: START_PAUSES_MS,
      pingEveryMs: PING_EVERY_MS,
      pongWithinMs: PONG_WITHIN_MS,
      graceMs: GRACE_MS,
      ...options,
    };
    this.#heartbeat = setInterval(() => this.#pingIdle(), this.#options.pingEveryMs).unref();
  }

  get statistics(): PoolStatistics {
    return { containers: this.#members.size, ...this.#statistics };
  }

  /** Starts the first container, then the others in the background. Rejects when the first does not start. */
  async warmUp(): Promise<Hello> {
    this.#starting++;
    try {
      const { container, hello } = await this.#options.start();
      this.#join(container);
      return hello;
    } finally {
      this.#starting--;
      this.#refill();
    }
  }

  submit(job: Job): Promise<JobEnd> {
    return new Promise((settle) => {
      if (this.#closed) return settle({ kind: 'unavailable', detail: 'the sandbox is closed' });
      this.#queue.push({ ...job, settle, deaths: 0, losses: 0, confirming: false, queuedAt: performance.now() });
      this.#refill();
      return this.#dispatch();
    });
  }

  /** Settles what runs and what waits as unavailable, and removes every container. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    for (const member of this.#members) {
      this.#part(member);
      for (const job of member.jobs.values()) job.settle({ kind: 'unavailable', detail: 'the sandbox is closed' });
    }
    this.#failQueued('the sandbox is closed');
    await Promise.all(this.#removals);
  }

  #dispatch(): void {
    for (let job = this.#next(); job !== null && !this.#closed; job = this.#next()) {
      const member = this.#freest();
      if (member === null) return;
      (job.confirming ? this.#confirmations : this.#queue).shift();
      if (job.confirming) this.#confirming++;
      this.#give(member, job);
    }
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

  /** The container with the fewest requests that takes another. */
  #freest(): Member | null {
    let best: Member | null = null;
    for (const member of this.#members) {
      const isOpen = member.accepts && member.jobs.size < DEPTH && member.served < this.#options.recycleAfter;
      if (isOpen && (best === null || member.jobs.size < best.jobs.size)) best = member;
    }
    return best;
  }

  #give(member: Member, job: QueuedJob): void {
    const id = this.#nextId++;
    member.jobs.set(id, job);
    member.served++;
    member.container.hold(true);
    member.accepts = member.container.send('run', { ...job.header, id }, job.body);
    if (member.watchdog === null) this.#watch(member, START_TIMEOUT_MS);
  }

  #watch(member: Member, milliseconds: number | null): void {
    if (member.watchdog !== null) clearTimeout(member.watchdog);
    member.watchdog = null;
    if (milliseconds === null) return;
    const watchdog = setTimeout(() => {
      // Where this thread was busy the answer may lie here already: let it win over the timer.
      setImmediate(() => {
        if (member.watchdog === watchdog) this.#lose(member, 'it did not answer in time');
      });
    }, milliseconds);
    member.watchdog = watchdog;
  }

  #hear(member: Member, frame: Frame): void {
    if (frame.kind === 'pong') {
      member.awaitsPong = false;
      return;
    }
    const id = Number(frame.header['id']);
    const job = member.jobs.get(id);
    if (job === undefined) return;
    if (frame.kind === 'start') {
      member.current = id;
      this.#watch(member, PREPARE_MS + WALL_FACTOR * job.header.timeoutMs + this.#options.graceMs);
    } else if (frame.kind === 'done') {
      this.#done(member, id, job, frame);
    }
  }

  #done(member: Member, id: number, job: QueuedJob, frame: Frame): void {
    member.jobs.delete(id);
    member.current = null;
    if (job.confirming) this.#confirming--;
    this.#statistics.served++;
    this.#statistics.leftOver += Number(frame.header['leftOver'] ?? 0);
    if (member.jobs.size > 0) this.#watch(member, START_TIMEOUT_MS);
    else this.#rest(member);

    const end = frame.header['end'];
    if (end === 'lost') this.#blame(job, 'the interpreter it was to run on was lost');
    else if (end === 'timeout') this.#timedOut(job);
    else job.settle({ kind: 'done', frame });
    this.#dispatch();
  }

  /** A container with nothing to do keeps no process alive; one that has served its time goes. */
  #rest(member: Member): void {
    this.#watch(member, null);
    member.container.hold(false);
    if (member.served < this.#options.recycleAfter) return;
    this.#statistics.recycled++;
    this.#part(member);
    this.#refill();
  }

  #timedOut(job: QueuedJob): void {
    if (job.confirming) return job.settle({ kind: 'timeout' });
    this.#confirmations.push({ ...job, confirming: true, queuedAt: performance.now() });
  }

  /** @param suspicion what makes the running program a suspect; null: somebody else ended the container */
  #lose(member: Member, suspicion: string | null): void {
    if (!this.#members.has(member)) return;
    this.#statistics.lost++;
    this.#part(member);
    // Last first, so that they are first in the queue in their old order.
    for (const [id, job] of [...member.jobs].reverse()) {
      if (job.confirming) this.#confirming--;
      if (id !== member.current) this.#again(job);
      else if (suspicion !== null) this.#blame(job, suspicion);
      else if (++job.losses < MAX_LOSSES) this.#again(job);
      else job.settle({ kind: 'unavailable', detail: `its container was ended from outside ${MAX_LOSSES} times` });
    }
    this.#refill();
    this.#dispatch();
  }

  #blame(job: QueuedJob, detail: string): void {
    if (++job.deaths < MAX_DEATHS) this.#again(job);
    else job.settle({ kind: 'died', detail });
  }

  #again(job: QueuedJob): void {
    this.#statistics.repeated++;
    (job.confirming ? this.#confirmations : this.#queue).unshift(job);
  }

  #join(container: Container): void {
    const member: Member = {
      container,
      jobs: new Map(),
      current: null,
      served: 0,
      accepts: true,
      watchdog: null,
      awaitsPong: false,
    };
    this.#members.add(member);
    container.onFrame = (frame) => this.#hear(member, frame);
    container.onEnd = (why) => this.#lose(member, why);
    container.onDrain = () => {
      member.accepts = true;
      this.#dispatch();
    };
    container.hold(false);
    this.#dispatch();
  }

  /** Out of the pool; its removal goes on in the background. */
  #part(member: Member): void {
    this.#watch(member, null);
    this.#members.delete(member);
    this.#remove(member.container);
  }

  #remove(container: Container): void {
    const removal = container
      .remove()
      // A daemon that does not answer: the container ends by itself, since its stream has.
      .catch(() => {})
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  #refill(): void {
    while (!this.#closed && this.#members.size + this.#starting < this.size) void this.#start();
  }

  /** Tries for a while; when nothing helps and no other container lives, all that waits fails. */
  async #start(): Promise<void> {
    this.#starting++;
    let fault = '';
    try {
      for (const pause of [...this.#options.pauses, null]) {
        if (this.#closed) return;
        try {
          const { container } = await this.#options.start();
          if (this.#closed) this.#remove(container);
          else this.#join(container);
          return;
        } catch (error) {
          fault = (error as Error).message;
        }
        if (pause !== null) await new Promise((resolve) => setTimeout(resolve, pause));
      }
    } finally {
      this.#starting--;
    }
    if (this.#members.size + this.#starting === 0) this.#failQueued(`no container could be started: ${fault}`);
  }

  #failQueued(detail: string): void {
    for (const job of [...this.#queue.splice(0), ...this.#confirmations.splice(0)]) {
      job.settle({ kind: 'unavailable', detail });
    }
  }

  #pingIdle(): void {
    for (const member of this.#members) {
      if (member.jobs.size > 0) continue;
      member.awaitsPong = true;
      member.container.send('ping', { id: 0 });
      setTimeout(() => {
        if (member.awaitsPong && member.jobs.size === 0) this.#lose(member, null);
      }, this.#options.pongWithinMs).unref();
    }
  }
}
