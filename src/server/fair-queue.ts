/**
 * Fair queueing of jobs over a few slots: each request is a lane, and a free slot goes to the lane that has been served for the least
 * time, so that one with a thousand endless loops does not stop another with a thousand quick ones. A new lane starts level with the
 * lane served last (start-time fair queueing).
 */

/** A job was dropped before it began. */
export class Dropped extends Error {
  override readonly name = 'Dropped';
}

interface Job {
  readonly run: () => Promise<void>;
  readonly drop: (error: Dropped) => void;
}

export class FairQueue {
  readonly #slots: number;
  readonly #lanes = new Set<Lane>();
  #running = 0;
  #waiting = 0;
  #level = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Jobs that run and that wait. */
  get size(): { readonly running: number; readonly waiting: number } {
    return { running: this.#running, waiting: this.#waiting };
  }

  lane(): Lane {
    return new Lane(this.#level, {
      added: (lane) => {
        this.#lanes.add(lane);
        this.#waiting++;
        this.#dispatch();
      },
      dropped: (lane, jobs) => {
        this.#waiting -= jobs;
        this.#lanes.delete(lane);
      },
    });
  }

  #dispatch(): void {
    while (this.#running < this.#slots && this.#lanes.size > 0) {
      const lane = this.#leastServed();
      const job = lane.next();
      if (lane.waiting === 0) this.#lanes.delete(lane);
      this.#waiting--;
      this.#running++;
      this.#level = Math.max(this.#level, lane.served());
      const ended = lane.begin();
      void job.run().finally(() => {
        ended();
        this.#running--;
        this.#dispatch();
      });
    }
  }

  #leastServed(): Lane {
    let [least, leastServed]: [Lane | null, number] = [null, Infinity];
    for (const lane of this.#lanes) {
      const served = lane.served();
      if (served < leastServed) [least, leastServed] = [lane, served];
    }
    return least!;
  }
}

interface LaneOwner {
  readonly added: (lane: Lane) => void;
  readonly dropped: (lane: Lane, jobs: number) => void;
}

/** The jobs of one request. */
export class Lane {
  readonly #owner: LaneOwner;
  #jobs: Job[] = [];
  #first = 0;
  #served: number;
  /** When each of its running jobs began, in milliseconds. */
  readonly #began = new Set<{ readonly at: number }>();

  constructor(level: number, owner: LaneOwner) {
    this.#served = level;
    this.#owner = owner;
  }

  get waiting(): number {
    return this.#jobs.length - this.#first;
  }

  /** Run when its turn comes. @throws Dropped when the lane is dropped before */
  run<Result>(work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ run: () => work().then(resolve, reject), drop: reject });
      this.#owner.added(this);
    });
  }

  /** Drop all that has not begun. */
  drop(why: string): void {
    const dropped = this.#jobs.slice(this.#first);
    [this.#jobs, this.#first] = [[], 0];
    this.#owner.dropped(this, dropped.length);
    const error = new Dropped(why);
    for (const { drop } of dropped) drop(error);
  }

  next(): Job {
    const job = this.#jobs[this.#first++]!;
    if (this.#first === this.#jobs.length) [this.#jobs, this.#first] = [[], 0];
    return job;
  }

  /** Milliseconds that its jobs have had, those under way included, and the level that it began at. */
  served(): number {
    const now = performance.now();
    let sum = this.#served;
    for (const { at } of this.#began) sum += now - at;
    return sum;
  }

  /** @returns what to call when the job has ended */
  begin(): () => void {
    const began = { at: performance.now() };
    this.#began.add(began);
    return () => {
      this.#began.delete(began);
      this.#served += performance.now() - began.at;
    };
  }
}
