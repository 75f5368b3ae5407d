/** The test part of a study: what was chosen is measured on it, and nothing else of it is ever read. */
import { auroc } from '../metrics/probe-metrics.js';
import { aurocDifference, heldOutMetrics } from './held-out.js';
import type { Difference, Estimate, HeldOutMetrics } from './held-out.js';

export interface TypeMetrics {
  readonly tasks: number;
  readonly inBand: number;
  /** Null with fewer than two tasks in band or out of it. */
  readonly auroc: Estimate | null;
}

/** Least tasks in band, and out of it, that an AUROC is given of. */
const LEAST = 2;

export class TestPart {
  readonly #rows: readonly number[];
  readonly #inBand: readonly boolean[];
  readonly #types: readonly string[];
  readonly #seed: number;

  /**
   * @param rows the tasks of this part
   * @param inBand whether each of all tasks is in band
   * @param types the kind of each of all tasks
   * @param seed of the intervals
   */
  constructor(rows: readonly number[], inBand: readonly boolean[], types: readonly string[], seed: number) {
    this.#rows = rows;
    this.#inBand = rows.map((row) => inBand[row]!);
    this.#types = rows.map((row) => types[row]!);
    this.#seed = seed;
  }

  /** The part's own of logits of all tasks. */
  take(logits: Float64Array): number[] {
    return this.#rows.map((row) => logits[row]!);
  }

  measure(logits: readonly number[]): HeldOutMetrics {
    return heldOutMetrics(this.#inBand, logits, this.#seed);
  }

  auroc(logits: readonly number[]): number {
    return auroc(this.#inBand, logits);
  }

  /** AUROC of `first` − that of `second`. */
  difference(first: readonly number[], second: readonly number[]): Difference {
    return aurocDifference(this.#inBand, first, second, this.#seed);
  }

  /** Among tasks of one kind alone: kinds differ in how often they are in band, and a probe may know no more than that. */
  byType(logits: readonly number[]): Record<string, TypeMetrics> {
    const types = [...new Set(this.#types)].sort();
    return Object.fromEntries(
      types.map((type) => {
        const own = this.#types.flatMap((of, i) => (of === type ? [i] : []));
        const inBand = own.map((i) => this.#inBand[i]!);
        const inside = inBand.filter(Boolean).length;
        const isMeasured = Math.min(inside, own.length - inside) >= LEAST;
        const of = own.map((i) => logits[i]!);
        return [
          type,
          {
            tasks: own.length,
            inBand: inside,
            auroc: isMeasured ? heldOutMetrics(inBand, of, this.#seed).auroc : null,
          },
        ];
      }),
    );
  }
}
