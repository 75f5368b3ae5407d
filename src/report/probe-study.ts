/** `probe-study.html`: candidates of a probe by layer, pooling and head, the learning curve, and what was chosen. */
import { largest } from '../metrics/extremes.js';
import { writeFileAtomic } from '../store/files.js';
import { decimal, MISSING } from './format.js';
import { htmlPage, preformatted, scrolled, table } from './page.js';
import { numberTick } from './plots/axes.js';
import { figure, legendList } from './plots/figure.js';
import { learningCurvePlot } from './plots/learning-curve-plot.js';
import { escapeXml } from './plots/svg.js';

type Interval = readonly [low: number, high: number];

interface Estimate {
  readonly value: number;
  /** 95%. */
  readonly interval: Interval;
}

interface Metrics {
  readonly auroc: Estimate;
  readonly averagePrecision: Estimate;
  readonly calibrationError: Estimate;
}

type Features = readonly { readonly layer: number; readonly pooling: string }[];

interface Row extends Metrics {
  readonly kind: 'probe' | 'length' | 'ngram';
  readonly features: Features;
  readonly head: string;
  readonly labels: number;
  readonly l2: number;
  readonly validationLoss: number;
  readonly behind: Estimate;
}

interface Point {
  readonly labels: number;
  readonly inBand: number;
  readonly features: Features;
  readonly head: string;
  readonly l2: number;
  readonly test: Metrics;
  readonly otherDraws: readonly number[];
  readonly byType: Readonly<
    Record<string, { readonly tasks: number; readonly inBand: number; readonly auroc: Estimate | null }>
  >;
  readonly baselines: Readonly<Record<'length' | 'ngram', { readonly head: string; readonly test: Metrics }>>;
  readonly over: Readonly<Record<'length' | 'ngram', Estimate>>;
}

export interface ProbeStudyReport {
  readonly title: string;
  readonly model: { readonly name: string };
  readonly band: { readonly min: number; readonly max: number };
  readonly k: number;
  readonly tasks: { readonly train: number; readonly validation: number; readonly test: number };
  readonly baseRate: number;
  readonly layers: readonly number[];
  /** By labels, then best first. */
  readonly rows: readonly Row[];
  /** By labels; the last is the choice. */
  readonly curve: readonly Point[];
  /** What speaks against the choice, a line each. */
  readonly warnings: readonly string[];
  /** Whether it beats chance and both baselines. */
  readonly recommended: boolean;
  /** What to write into the configuration. */
  readonly yaml: string;
}

const HEADS = ['counts', 'ordinal', 'band'];
const POOLINGS = [['mean'], ['last'], ['mean', 'last']];
const BASELINE_NAMES = { length: 'length alone', ngram: 'token n-grams alone' } as const;

/** Write the study, whole or not at all. */
export function writeProbeStudy(path: string, study: ProbeStudyReport): void {
  writeFileAtomic(path, probeStudyHtml(study));
}

/** `1.mean + 3.last` */
export function featuresName(features: Features): string {
  return features.map(({ layer, pooling }) => `${layer}.${pooling}`).join(' + ');
}

export function probeStudyHtml(study: ProbeStudyReport): string {
  const { title, model, band, k, tasks, baseRate } = study;
  const all = tasks.train + tasks.validation + tasks.test;
  return htmlPage(
    `${title}, probe study`,
    `<h1>${escapeXml(title)}: probe study</h1>
<p class="soft">${all} labelled tasks, ${decimal(100 * baseRate, 1)}% of them in band (${band.min} to ${band.max} of ${k} attempts);
${tasks.train} train, ${tasks.validation} choose, ${tasks.test} test. Probes read the hidden states of ${escapeXml(model.name)}. Features are
layer and pooling: 0 is the embeddings, n the residual stream after layer n; mean is over the tokens after the first, last is the last token’s.</p>
${choiceSection(study)}
${curveSection(study)}
${heatSection(study)}
${candidatesSection(study)}`,
  );
}

function choiceSection({ curve, yaml, tasks, warnings, recommended }: ProbeStudyReport): string {
  const chosen = curve.at(-1)!;
  const difference = ({ value, interval }: Estimate) => `${signed(value)} (${interval.map(signed).join(' to ')})`;
  return `<h2>The choice</h2>
<p>By the band’s log loss on the ${tasks.validation} validation tasks: <b>${escapeXml(featuresName(chosen.features))}</b>, head
<b>${escapeXml(chosen.head)}</b>, penalty ${chosen.l2}. Fitted again on training and validation together, it was then measured once on the
${tasks.test} test tasks, which no choice has seen. Its AUROC is ${difference(chosen.over.ngram)} above token n-grams,
${difference(chosen.over.length)} above length.</p>
${table(TEST_HEADINGS, [
  testRow('probe', featuresName(chosen.features), chosen.head, chosen.test),
  ...(['length', 'ngram'] as const).map((kind) =>
    testRow(BASELINE_NAMES[kind], '', chosen.baselines[kind].head, chosen.baselines[kind].test),
  ),
])}
${byType(chosen)}
${warnings.length === 0 ? '' : `<ul class="summary invalid">${warnings.map((warning) => `<li>${escapeXml(warning)}</li>`).join('\n')}</ul>`}
<p>${recommended ? 'To train the run’s probes on these features:' : 'So nothing is recommended. To train the run’s probes on these features all the same:'}</p>
<details open><summary>Settings</summary>${preformatted('Settings as YAML', escapeXml(yaml))}</details>`;
}

/** Only where there are several kinds. */
function byType({ byType: types }: Point): string {
  const kinds = Object.entries(types);
  if (kinds.length < 2) return '';
  return `<p class="soft">Kinds of task differ in how often they are in band; within a kind the probe has to know more than that.</p>
${table(
  ['test tasks of type', 'tasks', 'in band', 'AUROC of the probe'].map((heading) => ({ heading })),
  kinds.map(([type, { tasks, inBand, auroc }]) => [
    type,
    String(tasks),
    String(inBand),
    auroc === null ? MISSING : estimateCell(auroc),
  ]),
)}`;
}

const METRIC_HEADINGS = [
  { heading: 'AUROC', meaning: 'The chance that a task in band scores above one out of it.' },
  { heading: 'average precision', meaning: 'Precision averaged over recall; the share in band for a guess.' },
  { heading: 'calibration error', meaning: 'Mean difference of predicted and observed share, in bins of equal size.' },
];
const TEST_HEADINGS = [
  { heading: 'on the test tasks' },
  { heading: 'features' },
  { heading: 'head' },
  ...METRIC_HEADINGS,
];

function testRow(name: string, features: string, head: string, metrics: Metrics): string[] {
  return [name, features, head, ...metricCells(metrics)];
}

function metricCells({ auroc, averagePrecision, calibrationError }: Metrics): string[] {
  return [auroc, averagePrecision, calibrationError].map(estimateCell);
}

function estimateCell({ value, interval }: Estimate): string {
  return `${decimal(value, 3)} (${interval.map((bound) => decimal(bound, 3)).join('–')})`;
}

function curveSection({ curve, tasks }: ProbeStudyReport): string {
  const series = [
    { name: 'probe', of: ({ test }: Point) => test.auroc, others: ({ otherDraws }: Point) => otherDraws },
    { name: BASELINE_NAMES.ngram, of: ({ baselines }: Point) => baselines.ngram.test.auroc, others: () => [] },
    { name: BASELINE_NAMES.length, of: ({ baselines }: Point) => baselines.length.test.auroc, others: () => [] },
  ].map(({ name, of, others }, index) => ({
    name,
    series: index + 1,
    points: curve.map((point) => ({ size: point.labels, ...of(point), others: others(point) })),
  }));
  const svg = learningCurvePlot({
    description: 'AUROC on the test tasks by the number of labels, for the probe and its baselines',
    xName: 'labels, training and validation together',
    yName: 'AUROC on the test tasks',
    format: numberTick,
    curves: series,
    level: 0.5,
  });
  return `<h2>How many labels</h2>
<p class="soft">From each number of labels features, head and penalty are chosen anew, as one would who had no more of them. More labels
hold the fewer.</p>
${figure(
  'wide',
  'Learning curve',
  `Marks are one draw of the labels with the 95% interval over the ${tasks.test} test tasks; dashes are further draws; 0.5 is guessing.`,
  legendList(series.map(({ name, series: look }) => ({ name, series: look, mark: 'line-marker' }))),
  svg,
)}
${table(
  [
    { heading: 'labels' },
    { heading: 'in band' },
    { heading: 'chosen features' },
    { heading: 'head' },
    ...METRIC_HEADINGS,
    { heading: 'AUROC of other draws' },
    { heading: 'n-grams AUROC' },
    { heading: 'length AUROC' },
  ],
  curve.map((point) => [
    String(point.labels),
    String(point.inBand),
    featuresName(point.features),
    point.head,
    ...metricCells(point.test),
    point.otherDraws.map((auroc) => decimal(auroc, 3)).join(', '),
    decimal(point.baselines.ngram.test.auroc.value, 3),
    decimal(point.baselines.length.test.auroc.value, 3),
  ]),
)}`;
}

/** AUROC on the validation tasks of each layer and pooling, from all labels, head by head. */
function heatSection(study: ProbeStudyReport): string {
  const rows = rowsOfAll(study).filter(({ kind }) => kind === 'probe');
  const find = (layer: number, poolings: readonly string[], head: string) =>
    rows.find(
      (row) => row.head === head && featuresName(row.features) === poolings.map((p) => `${layer}.${p}`).join(' + '),
    );
  const layers = study.layers.filter((layer) => HEADS.some((head) => find(layer, POOLINGS[0]!, head)));
  const most = largest(rows.map(({ auroc }) => auroc.value));
  const cell = (row: Row | undefined) => {
    if (row === undefined) return '<td></td>';
    const heat = most > 0.5 ? Math.max(0, (row.auroc.value - 0.5) / (most - 0.5)) : 0;
    const title = `${row.head}, ${featuresName(row.features)}: ${metricCells(row)[0]}`;
    return `<td class="heat" style="--heat: ${Math.round(55 * heat)}%" title="${escapeXml(title)}">${decimal(row.auroc.value, 3)}</td>`;
  };
  const heads = HEADS.map((head) => `<th scope="colgroup" colspan="${POOLINGS.length}">${head}</th>`).join('');
  const poolings = HEADS.flatMap(() => POOLINGS.map((pooling) => `<th scope="col">${pooling.join(' + ')}</th>`)).join(
    '',
  );
  const body = layers.map((layer) => {
    const cells = HEADS.flatMap((head) => POOLINGS.map((pooling) => cell(find(layer, pooling, head))));
    return `<tr><td>${layer === 0 ? '0, embeddings' : layer}</td>${cells.join('')}</tr>`;
  });
  return `<h2>Layer, pooling and head</h2>
<p class="soft">AUROC on the ${study.tasks.validation} validation tasks, learnt from the ${study.tasks.train} training tasks; point at a
number for its interval. Differences of a few hundredths are within chance.</p>
${scrolled(
  'Table of AUROC by layer, pooling and head',
  `<table><thead><tr><th rowspan="2" scope="col">layer</th>${heads}</tr><tr>${poolings}</tr></thead>
<tbody>${body.join('\n')}</tbody></table>`,
)}`;
}

function candidatesSection(study: ProbeStudyReport): string {
  const headings = [
    { heading: 'features' },
    { heading: 'head' },
    { heading: 'penalty' },
    { heading: 'log loss', meaning: 'Mean −log P of the band on the validation tasks: what the choice is made by.' },
    { heading: 'behind the best', meaning: 'Difference of log loss, with its 95% interval over the validation tasks.' },
    ...METRIC_HEADINGS,
  ];
  const written = (rows: readonly Row[]) =>
    table(
      headings,
      rows.map((row) => [
        row.kind === 'probe' ? featuresName(row.features) : BASELINE_NAMES[row.kind],
        row.head,
        String(row.l2),
        decimal(row.validationLoss, 4),
        `${signed(row.behind.value)} (${row.behind.interval.map(signed).join(' to ')})`,
        ...metricCells(row),
      ]),
    );
  const all = rowsOfAll(study);
  const tied = all.filter(({ kind, behind }) => kind === 'probe' && behind.interval[0] <= 0).length;
  const fewer = study.curve.slice(0, -1).map(({ labels }) => {
    const rows = study.rows.filter((row) => row.labels === labels);
    return `<details><summary>Learnt from ${labels} labels</summary>${written(rows)}</details>`;
  });
  return `<h2>All candidates</h2>
<p class="soft">On the validation tasks, best log loss first, learnt from the training tasks. ${tied} of
${all.filter(({ kind }) => kind === 'probe').length} probes, the best among them, are not told apart from the best: the interval of their
difference includes zero. Being the best of many on few tasks flatters; the test tasks do not.</p>
${written(all)}
${fewer.join('\n')}`;
}

function rowsOfAll({ rows, curve }: ProbeStudyReport): readonly Row[] {
  const all = curve.at(-1)!.labels;
  return rows.filter(({ labels }) => labels === all);
}

function signed(value: number): string {
  return `${value > 0 ? '+' : ''}${decimal(value, 3)}`;
}
