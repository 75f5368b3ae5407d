/** The report's figures: which numbers go into which plot, with captions and legends. */
import { wilsonInterval } from '../metrics/interval.js';
import { numberTick, percentTick } from './plots/axes.js';
import { barPlot, lyingBarPlot } from './plots/bar-plot.js';
import { intervalPlot } from './plots/interval-plot.js';
import { type Curve, type EndPoint, linePlot } from './plots/line-plot.js';
import { reliabilityPlot } from './plots/reliability-plot.js';
import { figure, type LegendEntry, legendList } from './plots/figure.js';
import type { ArmTraining, ProbeReport, ReportData } from './report-data.js';
import type { ArmResult } from './results.js';

/** Arm → the number that gives its look in every plot. */
export type Series = ReadonlyMap<string, number>;

/** Rates with intervals, pass counts, topics. */
export function outcomeFigures(data: ReportData, series: Series): string {
  const { arms } = data.results;
  if (arms.length === 0) return '';
  const legend = arms.map(({ name }): LegendEntry => ({ name, series: series.get(name)!, mark: 'bar' }));
  return `<div class="figures">
${[
  figure(
    '',
    'Rates',
    'Marks are rates, lines 95% intervals; arms whose intervals do not overlap differ.',
    '',
    rates(arms, series),
  ),
  figure(
    '',
    'Solver passes of each arm’s generations',
    'All generations of an arm add up to 100%.',
    legendList(legend),
    passCounts(data, series),
  ),
].join('\n')}
</div>
${topicFigure(data, series, legendList(legend))}`;
}

function rates(arms: readonly ArmResult[], series: Series): string {
  const row = ({ name }: ArmResult, successes: number, trials: number) => ({
    name,
    series: series.get(name)!,
    rate: trials === 0 ? 0 : successes / trials,
    interval: wilsonInterval(successes, trials),
  });
  const graded = ({ passCounts: counts }: ArmResult): number => counts.reduce((sum, count) => sum + count, 0);
  return intervalPlot(
    'Frontier rate, unique frontier rate, in band of valid, and validity of each arm with 95% intervals',
    [
      { heading: 'In band / all', rows: arms.map((arm) => row(arm, arm.frontier, arm.n)) },
      {
        heading: 'Distinct in band / all',
        rows: arms.map((arm) => row(arm, Math.round(arm.uniqueFrontierRate * arm.n), arm.n)),
      },
      { heading: 'In band / valid', rows: arms.map((arm) => row(arm, arm.frontier, graded(arm))) },
      { heading: 'Valid / all', rows: arms.map((arm) => row(arm, arm.valid, arm.n)) },
    ],
    'share',
  );
}

function passCounts({ results, band }: ReportData, series: Series): string {
  return barPlot({
    description: 'Share of generations by the number of attempts that the solver passed, for each arm',
    groupName: `attempts passed, of ${band.of}`,
    valueName: 'generations',
    format: percentTick,
    groups: ['invalid', ...Array.from({ length: band.of + 1 }, (_, passes) => String(passes))],
    series: results.arms.map(({ name, n, valid, passCounts: counts }) => ({
      name,
      series: series.get(name)!,
      values: [n - valid, ...counts].map((count) => count / Math.max(1, n)),
    })),
    shaded: { first: band.min + 1, last: band.max + 1, note: 'in band' },
  });
}

function topicFigure({ topics: perArm }: ReportData, series: Series, legend: string): string {
  // The order over all arms together, each counting the same.
  const total = new Map<string, number>();
  for (const { shares } of perArm) {
    for (const { name, share } of shares) total.set(name, (total.get(name) ?? 0) + share);
  }
  const names = [...total.keys()].sort((a, b) => total.get(b)! - total.get(a)!);
  if (names.length === 0) return '';
  const svg = lyingBarPlot({
    description: 'Share of valid tasks by topic, for each arm',
    groupName: 'topic',
    valueName: 'valid tasks',
    format: percentTick,
    groups: names.map((name) => name.replaceAll('_', ' ')),
    series: perArm.map(({ arm, shares }) => ({
      name: arm,
      series: series.get(arm)!,
      values: names.map((name) => shares.find((topic) => topic.name === name)?.share ?? 0),
    })),
  });
  return figure('wide', 'Topics', 'Share of each arm’s valid tasks. Mode collapse is one long bar.', legend, svg);
}

/** Reward, validity, frontier rate and divergence over the steps; nothing before the first step. */
export function trainingFigures(data: ReportData, series: Series): string {
  const training = data.training.filter(({ steps }) => steps.length > 0);
  if (training.length === 0) return '';
  const curvesOf = (value: (step: ArmTraining['steps'][number]) => number | null): Curve[] =>
    training.flatMap(({ arm, steps }) => {
      const points = steps.flatMap((step) => {
        const height = value(step);
        return height === null ? [] : [[step.step, height] as const];
      });
      return points.length === 0 ? [] : [{ name: arm, series: series.get(arm)!, points }];
    });
  const legend = training.map(({ arm }): LegendEntry => ({ name: arm, series: series.get(arm)!, mark: 'line' }));
  const common = { xName: 'step' };
  return `<p class="soft">Thin lines are steps, bold lines their moving average over five.</p>
<div class="figures">
${figure(
  '',
  'Reward',
  'Mean over all samples of a step, invalid ones with their penalty.',
  legendList(legend),
  linePlot({
    ...common,
    description: 'Mean reward over training steps',
    yName: 'mean reward',
    format: numberTick,
    curves: curvesOf(({ rewardMean }) => rewardMean),
  }),
)}
${figure(
  '',
  'Validity',
  'Valid tasks / samples of a step.',
  legendList(legend),
  linePlot({
    ...common,
    description: 'Validity over training steps',
    yName: 'valid / all',
    format: percentTick,
    curves: curvesOf(({ validity }) => validity),
    fromZero: true,
  }),
)}
${frontierFigure(data, curvesOf, series)}
${figure(
  '',
  'Divergence from the reference',
  'KL(policy ‖ reference) in nats a sequence.',
  legendList(legend),
  linePlot({
    ...common,
    description: 'KL per sequence over training steps',
    yName: 'nats / sequence',
    format: numberTick,
    curves: curvesOf(({ klPerSequence }) => klPerSequence),
    fromZero: true,
  }),
)}
</div>`;
}

/** In band / all over the steps: the probe's claim as a line, what the solver measured as marks. */
function frontierFigure(
  { results, training }: ReportData,
  curvesOf: (value: (step: ArmTraining['steps'][number]) => number | null) => Curve[],
  series: Series,
): string {
  const rateOf = (share: number | null, validity: number): number | null => (share === null ? null : share * validity);
  const curves = curvesOf(({ claimedInBand, validity }) => rateOf(claimedInBand, validity));
  const dots = curvesOf(({ measuredInBand, validity }) => rateOf(measuredInBand, validity));
  const trained = new Set(training.map(({ arm }) => arm));
  const ends = results.arms
    .filter(({ name }) => trained.has(name))
    .map((arm): EndPoint => ({
      name: `${arm.name}, evaluation`,
      series: series.get(arm.name)!,
      value: arm.frontierRate,
      interval: arm.frontierInterval,
    }));
  if (curves.length + dots.length === 0) return '';
  const untrained = results.arms.find(({ name }) => !trained.has(name));
  const level =
    untrained === undefined
      ? undefined
      : { name: `${untrained.name}, evaluation`, series: series.get(untrained.name)!, value: untrained.frontierRate };
  const legend: LegendEntry[] = [
    ...curves.map(({ name, series: look }): LegendEntry => ({ name: `${name}, claimed`, series: look, mark: 'line' })),
    ...dots.map(({ name, series: look }): LegendEntry => ({ name: `${name}, measured`, series: look, mark: 'marker' })),
    ...ends.map(({ name, series: look }): LegendEntry => ({ name, series: look, mark: 'whisker' })),
    ...(level === undefined ? [] : [{ name: level.name, series: level.series, mark: 'line' as const }]),
  ];
  return figure(
    '',
    'Frontier rate',
    'In band / all: claimed by the probe on the way, measured by the solver at the end (with its 95% interval).',
    legendList(legend),
    linePlot({
      description: 'Frontier rate over training steps: claimed by the probe, and measured by the solver at the end',
      xName: 'step',
      yName: 'in band / all',
      format: percentTick,
      curves,
      dots,
      ends,
      ...(level === undefined ? {} : { level }),
      fromZero: true,
    }),
  );
}

/** Reliability of the probes that give probabilities. */
export function calibrationFigure(probes: readonly ProbeReport[]): string {
  const drawn = probes.filter(({ reliability }) => reliability.length > 0);
  if (drawn.length === 0) return '';
  const curves = drawn.map(({ name, reliability }, index) => ({ name, series: index + 1, bins: reliability }));
  return figure(
    'square',
    'Calibration',
    'Held-out tasks in bins of equal size; on the diagonal a probe means what it says. Lines are 95% intervals.',
    legendList(curves.map(({ name, series }) => ({ name, series, mark: 'line-marker' }))),
    reliabilityPlot('Share of tasks in band against predicted probability, for each probe', curves),
  );
}
