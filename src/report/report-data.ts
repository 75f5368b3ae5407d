/** What the report shows, as plain values; whoever calls queries the store. */
import type { Band, TopicShare } from '../metrics/frontier.js';
import type { Results } from './results.js';

export interface ReportData {
  /** Name of the run, e.g. of its folder. */
  readonly title: string;
  readonly band: Band;
  readonly results: Results;
  /** Topics of the valid tasks of each arm's evaluation. */
  readonly topics: readonly { readonly arm: string; readonly shares: readonly TopicShare[] }[];
  readonly samples: readonly { readonly arm: string; readonly tasks: readonly SampleTask[] }[];
}

export interface SampleTask {
  /** What the generator was asked for. */
  readonly type: string;
  /** Program and call, or the completion that is none. */
  readonly text: string;
  readonly valid: boolean;
  /** `ok`, or why the task is not valid. */
  readonly outcome: string;
  readonly output: string | null;
  readonly topic: string;
  /** Passed attempts; null when invalid or not graded. */
  readonly passes: number | null;
}
