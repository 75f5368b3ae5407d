/** The report's figures of training and of probes: which numbers go into which plot, with captions and legends. */
import { numberTick, percentTick } from './plots/axes.js';
import { type Curve, type EndPoint, linePlot } from './plots/line-plot.js';
import { reliabilityPlot } from './plots/reliability-plot.js';
import { figure, type LegendEntry, legendList } from './plots/figure.js';
import type { ReportData } from './report-data.js';
import type { ArmTraining, ProbeReport, TrainingStep } from './results.js';
import type { Series } from './outcome-figures.js';

/** Reward, validity, frontier rate and divergence over the steps; nothing before the first step. */
export function trainingFigures(data: ReportData, series: Series): string {
  const { curves: training } = data.results;
  if (training.length === 0) return '';
  const curvesOf = (value: (step: TrainingStep) => number | null): Curve[] =>
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
${clipFigure(training, legend, curvesOf)}
</div>`;
}

/** Nothing where no step takes more than one update of its samples: their ratios are 1. */
function clipFigure(
  curves: readonly ArmTraining[],
  legend: readonly LegendEntry[],
  curvesOf: (value: (step: TrainingStep) => number | null) => Curve[],
): string {
  if (!curves.some(({ steps }) => steps.some(({ clippedShare }) => (clippedShare ?? 0) > 0))) return '';
  return figure(
    '',
    'Clipped tokens',
    'Tokens whose ratio to the policy that wrote them the clip moved / all, in the last update of a step.',
    legendList(legend),
    linePlot({
      xName: 'step',
      description: 'Share of clipped tokens over training steps',
      yName: 'clipped / all',
      format: percentTick,
      curves: curvesOf(({ clippedShare }) => clippedShare),
      fromZero: true,
    }),
  );
}

/** In band / all over the steps: the probe's claim as a line, what the solver measured as marks. */
function frontierFigure(
  { results }: ReportData,
  curvesOf: (value: (step: TrainingStep) => number | null) => Curve[],
  series: Series,
): string {
  const { curves: training } = results;
  const rateOf = (share: number | null, validity: number): number | null => (share === null ? null : share * validity);
  const curves = curvesOf(({ claimedInBand, validity }) => rateOf(claimedInBand, validity));
  const dots = curvesOf(({ measured }) => measured?.rate ?? null).map((curve) => ({
    ...curve,
    intervals: training
      .find(({ arm }) => arm === curve.name)!
      .steps.flatMap(({ measured }) => (measured === null ? [] : [measured.interval])),
  }));
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
    ...training.map(({ arm }): LegendEntry => ({ name: arm, series: series.get(arm)!, mark: 'line-marker' })),
    ...(level === undefined ? [] : [{ name: level.name, series: level.series, mark: 'line' as const }]),
  ];
  return figure(
    '',
    'Frontier rate',
    'In band / all. Lines: claimed by the probe on the way; marks: measured by the solver with 95% intervals, at the end on fresh generations.',
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
