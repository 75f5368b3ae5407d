/** The figures of a comparison: which numbers go into which plot. */
import { armRoles, trialsOf } from './comparison.js';
import type { ArmRoles, ComparedArm, Rate } from './comparison.js';
import { count } from './format.js';
import { figure, legendList } from './plots/figure.js';
import { scatterPlot } from './plots/scatter-plot.js';
import { seedPlot } from './plots/seed-plot.js';
import type { SeedGroup, SeedPlot, SeedRow } from './plots/seed-plot.js';
import { typesOf } from './results.js';

/** Arms look alike by what they are for; their names stand beside them. */
const LOOKS = [
  'untrained',
  'probe',
  'solver in the loop',
  'probe, against mode collapse',
  'control',
  'another family',
] as const;

type Look = (typeof LOOKS)[number];

function lookOf(arm: ComparedArm, roles: ArmRoles): Look {
  if (roles.transfers.some((transfer) => transfer.arm === arm)) return 'another family';
  if (arm.reward === 'none') return 'untrained';
  if (roles.plain.includes(arm)) return 'probe';
  if (arm.reward === 'probe') return 'probe, against mode collapse';
  return arm.reward === 'solver' ? 'solver in the loop' : 'control';
}

/** Every figure of a comparison, `''` for one that its arms have nothing for. */
export interface ComparisonFigures {
  readonly frontier: string;
  readonly topics: string;
  readonly cost: string;
  readonly families: string;
  readonly types: string;
}

export function comparisonFigures(arms: readonly ComparedArm[]): ComparisonFigures {
  const roles = armRoles(arms);
  const series = (arm: ComparedArm): number => LOOKS.indexOf(lookOf(arm, roles));
  const present = LOOKS.filter((look) => arms.some((arm) => lookOf(arm, roles) === look));
  const rows = (value: (arm: ComparedArm) => Rate | undefined, of = arms): SeedRow[] =>
    of.flatMap((arm) => {
      const rate = value(arm);
      return rate === undefined || rate.mean === null ? [] : [seedRow(arm.name, series(arm), rate)];
    });
  const legend = legendList(present.map((look) => ({ name: look, series: LOOKS.indexOf(look), mark: 'marker' })));
  return {
    frontier: figure(
      'wide',
      'Frontier rate',
      'In band / all. Bars are means over seeds, dots the seeds, lines Wilson 95% intervals of the pooled counts.',
      legend,
      seedPlot({
        description: 'Frontier rate by arm: mean, pooled interval and every seed',
        groups: [{ heading: '', rows: rows(({ frontierRate }) => frontierRate) }],
        valueName: 'in band / all',
        ...levelOf(roles.base, 'frontierRate'),
      }),
    ),
    topics: figure(
      'wide',
      'Topic concentration',
      'Share of the most frequent topic among valid tasks. Mode collapse is a long bar.',
      legend,
      seedPlot({
        description: 'Share of the most frequent topic by arm: mean, pooled interval and every seed',
        groups: [{ heading: '', rows: rows(({ topTopicShare }) => topTopicShare) }],
        valueName: 'valid tasks of the top topic',
        ...levelOf(roles.base, 'topTopicShare'),
      }),
    ),
    cost: costFigure(arms, series, legend),
    families: familyFigure(roles, rows, legend),
    types: typeFigure(arms, rows, legend),
  };
}

/** The line to compare with, where the arm has such a rate. */
function levelOf(arm: ComparedArm, key: 'frontierRate' | 'topTopicShare'): Pick<SeedPlot, 'level'> {
  const { mean } = arm[key];
  return mean === null ? {} : { level: { name: arm.name, value: mean } };
}

function costFigure(arms: readonly ComparedArm[], series: (arm: ComparedArm) => number, legend: string): string {
  const trained = arms.filter(({ reward }) => reward !== 'none');
  if (trained.length === 0) return '';
  return figure(
    'wide',
    'Solver trials against lift',
    'Lift is the frontier rate less the base arm’s, in percentage points; lines are Student’s 95% intervals over seeds. Up and to the left is better.',
    legend,
    scatterPlot({
      description: 'Solver trials against lift, a point an arm',
      xName: 'solver trials, on labels and in the loop',
      yName: 'lift, percentage points',
      xFormat: (trials) => count(Math.round(trials)),
      yFormat: (lift) => String(Number((100 * lift).toPrecision(3))).replace('-', '−'),
      points: trained.map((arm) => ({
        name: arm.name,
        series: series(arm),
        x: trialsOf(arm),
        y: arm.lift.mean!,
        interval: arm.lift.interval,
      })),
    }),
  );
}

type Rows = (value: (arm: ComparedArm) => Rate | undefined, of?: readonly ComparedArm[]) => SeedRow[];

function familyFigure({ base, single, transfers }: ArmRoles, rows: Rows, legend: string): string {
  if (transfers.length === 0) return '';
  const families = new Map<string, ComparedArm[]>();
  for (const { arm, base: own } of transfers) families.set(own.policy!, [...(families.get(own.policy!) ?? [own]), arm]);
  const own = single === undefined ? [base] : [base, single];
  const groups: SeedGroup[] = [["the run's own policy", own] as const, ...families].map(([heading, members]) => ({
    heading,
    rows: rows(({ frontierRate }) => frontierRate, members),
  }));
  return figure(
    'wide',
    'Across families',
    'In band / all of each family’s generator, untrained and rewarded by the same probe on the same reference.',
    legend,
    seedPlot({
      description: 'Frontier rate of each family, untrained and trained: mean, pooled interval and every seed',
      groups,
      valueName: 'in band / all',
    }),
  );
}

function typeFigure(arms: readonly ComparedArm[], rows: Rows, legend: string): string {
  const types = typesOf(arms);
  if (types.length < 2) return '';
  return figure(
    'wide',
    'Frontier rate by task type',
    'In band / all generations of the type.',
    legend,
    seedPlot({
      description: 'Frontier rate by task type and arm: mean, pooled interval and every seed',
      groups: types.map((type) => ({ heading: type, rows: rows(({ byType }) => byType[type]?.frontierRate) })),
      valueName: 'in band / all of the type',
    }),
  );
}

function seedRow(name: string, series: number, { mean, values, pooled }: Rate): SeedRow {
  return { name, series, mean: mean ?? 0, interval: pooled.interval, seeds: values.filter((value) => value !== null) };
}
