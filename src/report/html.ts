/** `report.html`: one file without outside parts, tables and plots of a run. */
import { disjoint } from '../metrics/interval.js';
import { writeFileAtomic } from '../store/files.js';
import {
  ARM_COLUMNS,
  type Column,
  COUNT_COLUMNS,
  DIVERSITY_COLUMNS,
  TYPE_COLUMNS,
  withFlags,
  withUngraded,
} from './columns.js';
import { decimal, duration, MISSING, percent } from './format.js';
import { calibrationFigure, trainingFigures } from './figures.js';
import { diversityFigures, outcomeFigures, type Series } from './outcome-figures.js';
import { escapeXml } from './plots/svg.js';
import type { ReportData, SampleTask } from './report-data.js';
import { type ArmResult, type ProbeReport, type Results, typesOf } from './results.js';
import { htmlPage, preformatted, table } from './page.js';

/** Write the report, whole or not at all. */
export function writeReport(path: string, data: ReportData): void {
  writeFileAtomic(path, reportHtml(data));
}

/** The whole document. Every text that comes from a model is escaped. */
export function reportHtml(data: ReportData): string {
  const { results, band } = data;
  const series: Series = new Map(results.arms.map(({ name }, index) => [name, index]));
  return htmlPage(
    data.title,
    `<h1>${escapeXml(data.title)}</h1>
<p class="soft">Seed ${results.seed}. A task is on the frontier, “in band”, when the solver passes ${band.min} to ${band.max} of ${band.of}
attempts. Everything under Results was measured by the solver on fresh generations; a probe’s score is never a result.</p>
${resultsSection(data, series)}
${typesSection(data.results)}
${diversitySection(data, series)}
${trainingSection(data, series)}
${probesSection(data.results.probes)}
${samplesSection(data)}
${runSection(data)}`,
  );
}

function resultsSection(data: ReportData, series: Series): string {
  const { arms } = data.results;
  return `<h2>Results</h2>
${warningList(data.results)}
${comparison(arms)}
${tableOf(withFlags(ARM_COLUMNS, arms), arms)}
<p class="soft">Hover over a heading for its meaning.</p>
<details><summary>Counts</summary>${tableOf(withUngraded(COUNT_COLUMNS, arms, ungradedOf), arms)}</details>
${outcomeFigures(data, series)}`;
}

function warningList({ warnings }: Results): string {
  if (warnings.length === 0) return '';
  return `<ul class="summary invalid">${warnings.map((warning) => `<li>${escapeXml(warning)}</li>`).join('\n')}</ul>`;
}

/** Nothing where there is one task type only. */
function typesSection({ arms }: Results): string {
  const types = typesOf(arms);
  if (types.length < 2) return '';
  const rows = types.flatMap((type) =>
    arms.flatMap(({ name, byType }) => (byType[type] === undefined ? [] : [{ type, arm: name, rates: byType[type] }])),
  );
  const columns = withUngraded(TYPE_COLUMNS, rows, ({ rates }) => rates.ungraded);
  return `<h3>By task type</h3>\n${tableOf(columns, rows, 1)}`;
}

const ungradedOf = ({ ungraded }: ArmResult): number => ungraded;

function diversitySection(data: ReportData, series: Series): string {
  const { arms, topicRules } = data.results;
  const [texts] = arms.filter(({ valid }) => valid > 0).map(({ diversity }) => diversity.texts);
  if (texts === undefined) return '';
  return `<h3>Diversity</h3>
<p class="soft">Of valid tasks. What depends on how many there are is measured on ${texts} of each arm. Topics by the rules ${escapeXml(topicRules)}.</p>
${tableOf(DIVERSITY_COLUMNS, arms)}
${diversityFigures(data, series)}`;
}

/** `wide`: the column, if any, that holds running text. */
function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], wide?: number): string {
  return table(
    columns.map(({ heading, meaning }) => ({ heading, meaning })),
    rows.map((row) => columns.map(({ value }) => value(row))),
    wide,
  );
}

/** Each arm against the first, in words. */
function comparison([reference, ...others]: readonly ArmResult[]): string {
  if (reference === undefined || others.length === 0) return '';
  const times = (rate: number, base: number): string =>
    base === 0 ? '' : `, ${(rate / base).toFixed(1)} × ${escapeXml(reference.name)}`;
  const items = others.map((arm) => {
    const apart = disjoint(arm.frontierInterval, reference.frontierInterval) ? 'do not overlap' : 'overlap';
    return `<li><b>${escapeXml(arm.name)}</b>: ${percent(arm.frontierRate)} of all generations in
band${times(arm.frontierRate, reference.frontierRate)} (the 95% intervals ${apart}); ${percent(arm.inBandOfValid)} of the valid
tasks${times(arm.inBandOfValid, reference.inBandOfValid)}.</li>`;
  });
  return `<ul class="summary">${items.join('\n')}</ul>`;
}

function trainingSection(data: ReportData, series: Series): string {
  const figures = trainingFigures(data, series);
  if (figures === '') return '';
  const claims = data.results.arms.filter(({ claimedInBand }) => claimedInBand !== null);
  return `<h2>Training</h2>
${figures}
${
  claims.length === 0
    ? ''
    : `<h3>Claimed against measured</h3>
<p class="soft">Share of the evaluated valid tasks that are in band: as the probe has it, and as the solver does. Reinforcement learning
moves tasks to where the probe errs in their favour, so a claim above the measurement is to be expected.</p>
${table(
  ['arm', 'claimed in band', 'measured in band', 'KL per sequence (nats)'].map((heading) => ({ heading })),
  claims.map((arm) => [arm.name, share(arm.claimedInBand), share(arm.measuredInBand), decimal(arm.klPerSequence, 2)]),
)}`
}`;
}

function probesSection(probes: readonly ProbeReport[]): string {
  if (probes.length === 0) return '';
  const edited = probes.some(({ edits }) => edits !== null);
  const doubted = probes.some(({ warnings }) => warnings.length > 0);
  return `<h2>Probes</h2>
<p class="soft">On labels that were held out from fitting. Baselines read the same tasks and know nothing of the model’s hidden states.</p>
${table(
  [
    'probe',
    'AUROC (95%)',
    'average precision (95%)',
    'calibration error',
    'features',
    ...(edited ? ['rise by idle edits (95%)', 'lifted into the band'] : []),
    ...(doubted ? ['warning'] : []),
  ].map((heading) => ({ heading })),
  probes.map((probe) => [
    probe.name,
    estimate(probe.auroc),
    estimate(probe.averagePrecision),
    decimal(probe.calibrationError, 3),
    probe.features,
    ...(edited ? editCells(probe.edits) : []),
    ...(doubted ? [probe.warnings.join('; ') || MISSING] : []),
  ]),
  4,
)}
${edited ? `<p class="soft">${IDLE_EDITS}</p>` : ''}
${calibrationFigure(probes)}`;
}

const IDLE_EDITS = `Idle edits change a held-out task’s text and leave its answer as it was: other names, unused lines, branches that are never entered, blanks,
comments. The rise is the most that a search of them raised a task’s logit, in deviations of the logits on the labels, which the reward counts in.
Lifted are, of the tasks below even odds of the band, those that it brought above.`;

function editCells(edits: ProbeReport['edits']): string[] {
  if (edits === null) return [MISSING, MISSING];
  const { rise, lifted } = edits;
  return [
    `${decimal(rise.value, 2)} (${rise.interval.map((bound) => decimal(bound, 2)).join('–')})`,
    `${lifted.count} of ${lifted.of}`,
  ];
}

function samplesSection({ samples, band, results }: ReportData): string {
  const arms = samples.filter(({ tasks }) => tasks.length > 0);
  if (arms.length === 0) return '';
  const several = typesOf(results.arms).length > 1;
  const about = ({ type, topic }: SampleTask): string =>
    [...(several ? [type] : []), topic.replaceAll('_', ' ')].join(' · ');
  const card = (task: SampleTask): string => {
    const output = task.output === null ? '' : `<span class="output">→ ${escapeXml(task.output)}</span>\n`;
    return `<article class="task">${preformatted('Task', `${escapeXml(task.text.trimEnd())}\n${output}`)}
<footer><span>${escapeXml(about(task))}</span>${verdict(task, band)}</footer></article>`;
  };
  return `<h2>Sample tasks</h2>
<p class="soft">Not picked: the first generations of each arm’s evaluation, with the solver’s passes of ${band.of} attempts.</p>
${arms.map(({ arm, tasks }) => `<h3>${escapeXml(arm)}</h3>\n<div class="tasks">${tasks.map(card).join('\n')}</div>`).join('\n')}`;
}

function verdict(task: SampleTask, band: ReportData['band']): string {
  if (!task.valid)
    return `<span class="verdict invalid">invalid: ${escapeXml(task.outcome.replaceAll('_', ' '))}</span>`;
  if (task.passes === null) return '<span class="verdict">not graded</span>';
  const within = task.passes >= band.min && task.passes <= band.max;
  const passes = `${task.passes} of ${band.of}`;
  return within ? `<span class="verdict in-band">${passes} · in band</span>` : `<span class="verdict">${passes}</span>`;
}

function runSection({ results }: ReportData): string {
  const phases = [...new Set(results.arms.flatMap((arm) => Object.keys(arm.seconds)))];
  const time = (arm: ArmResult, phase: string): string => {
    const seconds = arm.seconds[phase];
    return seconds === undefined ? MISSING : duration(seconds);
  };
  return `<h2>The run</h2>
<h3>Time by phase</h3>
${table(
  ['arm', ...phases].map((heading) => ({ heading })),
  results.arms.map((arm) => [arm.name, ...phases.map((phase) => time(arm, phase))]),
)}
<details><summary>Versions and configuration</summary>
${preformatted('Versions and configuration as JSON', escapeXml(JSON.stringify({ versions: results.versions, config: results.config }, null, 2)))}</details>`;
}

function share(value: number | null): string {
  return value === null ? MISSING : percent(value);
}

/** `0.806 (0.775–0.836)` */
function estimate({ value, interval: [low, high] }: ProbeReport['auroc']): string {
  return `${decimal(value, 3)} (${decimal(low, 3)}–${decimal(high, 3)})`;
}
