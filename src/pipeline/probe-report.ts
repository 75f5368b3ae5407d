/** A run's probes and their baselines as the report shows them. */
import type { ProbeCard } from '../probe/probe-file.js';
import { formatSpec } from '../probe/features.js';
import type { ProbeReport } from '../report/results.js';
import type { RunStore } from '../store/store.js';

/** Every probe on its held-out labels, then the first one's baselines. */
export function probeReports(store: RunStore): ProbeReport[] {
  const cards = store.probes().map(({ card }) => card as unknown as ProbeCard);
  const reports = cards.map((card) => describe(card.name, `${formatSpec(card.features)}, ${card.head}`, card.heldOut));
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
  };
}
