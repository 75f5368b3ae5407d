/** The report's figures of results and of diversity: which numbers go into which plot, with captions. */
import { wilsonInterval } from '../metrics/interval.js';
import { STRUCTURE_CELLS } from '../metrics/structure.js';
import { numberTick, percentTick } from './plots/axes.js';
import { figure } from './plots/figure.js';
import { heatPlot } from './plots/heat-plot.js';
import { type IntervalGroup, intervalPlot, type IntervalRow } from './plots/interval-plot.js';
import type { ReportData } from './report-data.js';
import type { ArmResult } from './results.js';

/** Arm → the number that gives its look in every plot. */
export type Series = ReadonlyMap<string, number>;

/** Rates with intervals, and pass counts. */
export function outcomeFigures(data: ReportData, series: Series): string {
  const { arms } = data.results;
  if (arms.length === 0) return '';
  const row = ({ name }: ArmResult, successes: number, trials: number): IntervalRow => ({
    name,
    series: series.get(name)!,
    value: trials === 0 ? 0 : successes / trials,
    interval: wilsonInterval(successes, trials),
  });
  return `<div class="figures">
${figure(
  '',
  'In band / all',
  'Marks are rates, lines 95% intervals; arms whose intervals do not overlap differ.',
  '',
  rates('Frontier rate and unique frontier rate of each arm with 95% intervals', [
    { heading: 'In band / all', rows: arms.map((arm) => row(arm, arm.frontier, measuredOf(arm))) },
    {
      heading: 'Distinct in band / all',
      rows: arms.map((arm) => row(arm, Math.round(arm.uniqueFrontierRate * measuredOf(arm)), measuredOf(arm))),
    },
  ]),
)}
${figure(
  '',
  'Validity, and in band of valid',
  'In band / all is the product of the two, but for tasks that lost attempts to errors.',
  '',
  rates('In band of valid, and validity of each arm with 95% intervals', [
    { heading: 'In band / valid', rows: arms.map((arm) => row(arm, arm.frontier, arm.valid - arm.ungraded)) },
    { heading: 'Valid / all', rows: arms.map((arm) => row(arm, arm.valid, arm.n)) },
  ]),
)}
</div>
${figure('wide', 'Solver passes', 'Shares of each arm’s generations; an arm adds up to 100%.', '', passCounts(data))}`;
}

/** Generations of which it is known whether they are in band. */
const measuredOf = ({ n, ungraded }: ArmResult): number => n - ungraded;

function rates(description: string, groups: readonly IntervalGroup[]): string {
  return intervalPlot({
    description,
    groups,
    valueName: 'share',
    format: percentTick,
    text: (rate) => `${(100 * rate).toFixed(1)}%`,
  });
}

function passCounts({ results, band }: ReportData): string {
  return heatPlot({
    description: 'Share of generations by the number of attempts that the solver passed, for each arm',
    columnName: `attempts passed, of ${band.of}`,
    columns: ['invalid', ...Array.from({ length: band.of + 1 }, (_, passes) => String(passes))],
    rows: results.arms.map((arm) => ({
      name: arm.name,
      values: [arm.n - arm.valid, ...arm.passCounts].map((count) => count / Math.max(1, measuredOf(arm))),
    })),
    framed: { first: band.min + 1, last: band.max + 1, note: 'in band' },
  });
}

/** Topic concentration and structural coverage side by side, then the topics themselves; nothing without a valid task. */
export function diversityFigures(data: ReportData, series: Series): string {
  const { arms } = data.results;
  const concentration = arms.flatMap(({ name, topTopic }): IntervalRow[] =>
    topTopic === null
      ? []
      : [
          {
            name,
            series: series.get(name)!,
            value: topTopic.share,
            interval: topTopic.interval,
            note: topTopic.name.replaceAll('_', ' '),
          },
        ],
  );
  const figures = [
    concentration.length === 0
      ? ''
      : figure(
          '',
          'Topic concentration',
          'Share of the most frequent topic among valid tasks, with its 95% interval. Mode collapse is a mark far to the right.',
          '',
          rates('Share of the most frequent topic of each arm with 95% intervals', [
            { heading: '', rows: concentration },
          ]),
        ),
    coverageFigure(arms, series),
  ].filter(Boolean);
  return `${figures.length === 0 ? '' : `<div class="figures">\n${figures.join('\n')}\n</div>\n`}${topicFigure(data)}`;
}

function coverageFigure(arms: readonly ArmResult[], series: Series): string {
  const covered = arms.flatMap(({ name, diversity: { coverage } }) =>
    coverage === null ? [] : [{ name, series: series.get(name)!, coverage }],
  );
  if (covered.length === 0) return '';
  const group = (heading: string, measure: 'cells' | 'effectiveCells'): IntervalGroup => ({
    heading,
    rows: covered.map(({ coverage, ...row }) => ({ ...row, ...coverage[measure] })),
  });
  const { texts } = arms.find(({ diversity }) => diversity.coverage !== null)!.diversity;
  return figure(
    '',
    'Structural coverage',
    `Of ${STRUCTURE_CELLS.toLocaleString('en')} cells: depth of the syntax tree × cyclomatic complexity × lines × variables. At ${texts} valid tasks an arm, with 95% intervals.`,
    '',
    intervalPlot({
      description: 'Cells of the structural feature space that each arm occupies, with 95% intervals',
      groups: [group('Cells occupied', 'cells'), group('Effective number of cells', 'effectiveCells')],
      valueName: 'cells',
      format: numberTick,
      text: (cells) => cells.toFixed(1),
    }),
  );
}

function topicFigure({ topics: perArm }: ReportData): string {
  // The order over all arms together, each counting the same.
  const total = new Map<string, number>();
  for (const { shares } of perArm) {
    for (const { name, share } of shares) total.set(name, (total.get(name) ?? 0) + share);
  }
  const names = [...total.keys()].sort((a, b) => total.get(b)! - total.get(a)!);
  if (names.length === 0) return '';
  const svg = heatPlot({
    description: 'Share of valid tasks by topic, for each arm',
    columnName: 'topic',
    columns: names.map((name) => name.replaceAll('_', ' ')),
    rows: perArm.map(({ arm, shares }) => ({
      name: arm,
      values: names.map((name) => shares.find((topic) => topic.name === name)?.share ?? 0),
    })),
  });
  return figure('wide', 'Topics', 'Share of each arm’s valid tasks. Mode collapse is one dark cell in a row.', '', svg);
}
