/** What the server counts, for Prometheus. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ItemResult } from './reward-service.js';

export interface ServerMetrics {
  readonly contentType: string;
  text(): Promise<string>;
  request(route: string, status: number, seconds: number): void;
  items(results: readonly ItemResult[]): void;
  checked(seconds: number): void;
  scored(batch: number): void;
}

/** Of one server: its registry is its own. */
export function createMetrics(queue: () => { readonly running: number; readonly waiting: number }): ServerMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'propel_requests_total',
    help: 'Requests answered.',
    labelNames: ['route', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'propel_request_seconds',
    help: 'Seconds from a request to its answer.',
    labelNames: ['route'],
    buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100],
    registers,
  });
  const items = new Counter({
    name: 'propel_items_total',
    help: 'Completions judged, by what they are: valid, invalid, error.',
    labelNames: ['status', 'outcome'],
    registers,
  });
  const checks = new Histogram({
    name: 'propel_check_seconds',
    help: 'Seconds of one completion’s check.',
    buckets: [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  const batches = new Histogram({
    name: 'propel_score_batch_tasks',
    help: 'Tasks scored in one pass of the reference model.',
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  registry.registerMetric(
    new Gauge({
      name: 'propel_queue_items',
      help: 'Completions that wait for their check, or are in it.',
      labelNames: ['state'],
      registers: [],
      collect() {
        const { running, waiting } = queue();
        this.set({ state: 'running' }, running);
        this.set({ state: 'waiting' }, waiting);
      },
    }),
  );
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    request(route, status, taken) {
      requests.inc({ route, status });
      seconds.observe({ route }, taken);
    },
    items(results) {
      for (const { status, outcome } of results) items.inc({ status, outcome });
    },
    checked: (taken) => checks.observe(taken),
    scored: (batch) => batches.observe(batch),
  };
}
