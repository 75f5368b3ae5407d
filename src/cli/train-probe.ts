/** `propel train-probe`: fit the probes to the labels, or study which to fit. */
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { UserError } from '../errors.js';
import { studyRun } from '../pipeline/probe-study.js';
import type { StudySummary } from '../pipeline/probe-study.js';
import { inBegunRun } from '../pipeline/run.js';
import { trainProbe } from '../pipeline/train-probe.js';
import type { ProbeCard } from '../probe/probe-file.js';
import { decimal } from '../report/format.js';
import { featuresName } from '../report/probe-study.js';
import { nonNegativeInteger, positiveInteger } from './options.js';
import { alignColumns, printJson, printLines, printWarnings } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

interface TrainProbeFlags extends RunFlags {
  readonly sweep?: boolean;
  readonly layers?: readonly number[];
  readonly labelCounts?: readonly number[];
}

const HELP = `
With --sweep nothing of the run is changed. Over layers × pooling × head × number of labels it compares probes and baselines on the
validation part of the labels, measures what is chosen there once on the test part, writes probe-study.json and probe-study.html into
the run folder, and prints the settings to train with.

Examples:
  propel train-probe
  propel train-probe my.yaml --out runs/mine --fresh --set probe.head=ordinal
  propel train-probe --sweep my.yaml --out runs/mine
  propel train-probe --sweep --layers 0,8,16,24 --label-counts 500,1000 --json`;

export function register(program: Command): void {
  withRunOptions(program.command('train-probe'))
    .description('Fit probes on the reference model’s hidden states to the labels')
    .option('--sweep', 'study layers, pooling, heads and numbers of labels instead; the run stays as it is')
    .option(
      '--layers <list>',
      'with --sweep: layers to study, e.g. 0,4,8 (default: all, of a deep model nine)',
      layerList,
    )
    .option('--label-counts <list>', 'with --sweep: numbers of labels to learn from, beside all', countList)
    .addHelpText('after', HELP)
    .action(async (configuration: string, flags: TrainProbeFlags) => {
      if (flags.sweep) return sweep(configuration, flags);
      for (const [name, value] of [
        ['--layers', flags.layers],
        ['--label-counts', flags.labelCounts],
      ] as const) {
        if (value !== undefined) throw new UserError(`${name} belongs to a study: give --sweep too`);
      }
      return train(configuration, flags);
    });
}

async function train(configuration: string, flags: RunFlags): Promise<void> {
  const summary = await inBegunRun(runOptions(configuration, flags), 'train-probe', trainProbe);
  printWarnings(summary.warnings);
  if (flags.json) return printJson(summary);
  const rows = summary.probes.flatMap(({ name, heldOut, baselines, warnings }) => [
    [name, ...cells(heldOut), ...(warnings === undefined ? [] : ['see the warnings'])],
    ['  length alone', ...cells(baselines.length.heldOut)],
    ['  token n-grams alone', ...cells(baselines.ngram.heldOut)],
  ]);
  printLines([
    ...alignColumns([['on held-out labels', ...METRICS], ...rows]),
    '',
    ...summary.probes.flatMap(({ name, edits }) => (edits ? [`${name}: ${editsInWords(edits)}`] : [])),
  ]);
}

function editsInWords({ tasks, perTask, rise, lifted }: NonNullable<ProbeCard['edits']>): string {
  const [low, high] = rise.interval.map((bound) => decimal(bound, 2));
  return (
    `edits that keep the answer, ${perTask} a task on ${tasks} held-out tasks, raise its logit by ${decimal(rise.value, 2)} (${low} to ${high}) ` +
    `deviations a task, and ${lifted.count} of ${lifted.of} over even odds of the band`
  );
}

async function sweep(configuration: string, flags: TrainProbeFlags): Promise<void> {
  if (flags.fresh) throw new UserError('--sweep changes nothing of a run: leave --fresh out');
  const study = await studyRun({
    ...runOptions(configuration, flags),
    layers: flags.layers ?? null,
    labelCounts: flags.labelCounts ?? null,
  });
  printWarnings(study.warnings);
  if (flags.json) return printJson(study);
  printStudy(study);
}

/** Candidates shown of a study. */
const SHOWN = 8;

function printStudy({ rows, curve, tasks, recommended, yaml }: StudySummary): void {
  const chosen = curve.at(-1)!;
  const best = rows.filter(({ labels, kind }) => labels === chosen.labels && kind === 'probe').slice(0, SHOWN);
  printLines([
    ...alignColumns([
      [`best on ${tasks.validation} validation labels`, 'head', ...METRICS, 'log loss'],
      ...best.map((row) => [featuresName(row.features), row.head, ...cells(row), decimal(row.validationLoss, 4)]),
    ]),
    '',
    ...alignColumns([
      [`on ${tasks.test} test labels, learnt from`, 'in band', 'chosen', 'head', ...METRICS, 'n-grams', 'length'],
      ...curve.map(({ labels, inBand, features, head, test, baselines }) => [
        `${labels} labels`,
        String(inBand),
        featuresName(features),
        head,
        ...cells(test),
        ...[baselines.ngram, baselines.length].map((baseline) => decimal(baseline.test.auroc.value, 3)),
      ]),
    ]),
    '',
    !recommended
      ? 'nothing is recommended, as the warnings say; to train on what was chosen all the same:'
      : 'to train on what was chosen, write into the configuration and run propel train-probe --fresh:',
    yaml.trimEnd(),
  ]);
}

const METRICS = ['AUROC', '95% interval', 'average precision', 'calibration error'];

type Estimates = Pick<StudySummary['rows'][number], 'auroc' | 'averagePrecision' | 'calibrationError'>;

function cells({ auroc, averagePrecision, calibrationError }: Estimates): string[] {
  return [
    decimal(auroc.value, 3),
    auroc.interval.map((bound) => decimal(bound, 3)).join(' to '),
    decimal(averagePrecision.value, 3),
    decimal(calibrationError.value, 3),
  ];
}

function layerList(text: string): number[] {
  return listOf(text, nonNegativeInteger);
}

function countList(text: string): number[] {
  return listOf(text, positiveInteger);
}

function listOf(text: string, parse: (item: string) => number): number[] {
  if (text.trim() === '') throw new InvalidArgumentError('Give whole numbers with commas between them.');
  return text.split(',').map((item) => parse(item.trim()));
}
