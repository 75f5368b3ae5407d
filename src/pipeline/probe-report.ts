/** A run's probes and their baselines as the report shows them. */
import type { ProbeCard } from '../probe/probe-file.js';
import { formatSpec } from '../probe/features.js';
import type { ProbeReport } from '../report/results.js';
import type { RunStore } from '../store/store.js';

/** What speaks against rewarding by a run's probes, a line each. */
export function probeWarnings(cards: readonly ProbeCard[]): string[] {
  return cards.flatMap(({ name, warnings = [] }) => warnings.map((warning) => `${name} ${warning}`));
}

/** The cards of a run's probes. */
export function probeCards(store: RunStore): ProbeCard[] {
  return store.probes().map(({ card }) => card as unknown as ProbeCard);
}

/** Every probe on its held-out labels, then the first one's baselines. */
export function probeReports(store: RunStore): ProbeReport[] {
  const cards = probeCards(store);
  const reports = cards.map((card) => ({
    ...describe(card.name, `${formatSpec(card.features)}, ${card.head}`, card.heldOut),
    edits: card.edits ?? null,
    warnings: card.warnings ?? [],
  }));
  const [first] = cards;
  if (first) {
    // The reliability diagram shows the probes alone.
    const { length, ngram } = first.baselines;
    reports.push({ ...describe('length', 'tokens, characters and lines', length.heldOut), reliability: [] });
    reports.push({ ...describe('n-grams', 'one and two tokens', ngram.heldOut), reliability: [] });
  }
  return reports;
}

function describe(name: string, features: string, heldOut: ProbeCard['heldOut']): ProbeReport {
  return {
    name,
    features,
    auroc: heldOut.auroc,
    averagePrecision: heldOut.averagePrecision,
    calibrationError: heldOut.calibrationError.value,
    reliability: heldOut.reliability,
    edits: null,
    warnings: [],
  };
}
