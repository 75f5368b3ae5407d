/** A study of what a probe should read and learn from, on the labels of a run; the run itself stays as it is. */
import { basename, join, resolve } from 'node:path';
import { UserError } from '../errors.js';
import { largest } from '../metrics/extremes.js';
import { distinctTexts, inBandOf } from '../probe/labels.js';
import { studyDoubts } from '../probe/doubts.js';
import { formatSpec } from '../probe/features.js';
import type { FeatureSpec } from '../probe/features.js';
import { memberSplit } from '../probe/split.js';
import { studyProbes } from '../probe/study.js';
import type { ProbeStudy } from '../probe/study.js';
import { studyCounts, studyFeatures, studyLayers } from '../probe/study-grid.js';
import { writeProbeStudy } from '../report/probe-study.js';
import { changedKeys, describeChanges } from '../store/changed-settings.js';
import { writeFileAtomic } from '../store/files.js';
import type { Json } from '../store/rows.js';
import { ensembleSize } from './config.js';
import type { Config } from './config.js';
import { versions } from './versions.js';
import { Workspace } from './workspace.js';
import type { RunOptions } from './workspace.js';

export interface StudyOptions extends Omit<RunOptions, 'fresh'> {
  /** Layers to study; null: all of a small model, else nine evenly spaced. */
  readonly layers: readonly number[] | null;
  /** Numbers of labels to learn from, beside all; null: 250, 500, 1000 and so on. */
  readonly labelCounts: readonly number[] | null;
}

export interface StudySummary extends ProbeStudy {
  /** What speaks against training on what was chosen, by the test labels, a line each. */
  readonly warnings: readonly string[];
  /** Whether the choice beats chance and both baselines on the test labels, be it by little. */
  readonly recommended: boolean;
  /** The settings that train a run's probes on what was chosen. */
  readonly yaml: string;
}

export const STUDY_FILES = { json: 'probe-study.json', html: 'probe-study.html' } as const;

/** Settings that labels do not come from: a study may be asked for with others than the run has. */
const FREE_SETTINGS: ReadonlySet<keyof Config> = new Set([
  'name',
  'engine',
  'sandbox',
  'probe',
  'train',
  'arms',
  'evaluate',
]);

/**
 * Study the probes that the labels of a run can train and write `probe-study.json` and `probe-study.html` into its folder. Penalties, shares
 * and further features are those of the configuration's `probe` section.
 * @throws UserError when there are no labels, they come from other settings, or a layer or number of labels does not exist
 */
export async function studyRun(options: StudyOptions): Promise<StudySummary> {
  const workspace = Workspace.read(options.folder, options.progress, options.signal);
  try {
    requireLabels(workspace, options.config);
    const { config, store } = workspace;
    const { probe } = options.config;
    const tasks = distinctTexts(
      store
        .labelledTasks({ phase: 'label' })
        .map(({ id, rendered, passes, type }) => ({ id, text: rendered!, passes, type })),
    );
    const { of: k, ...band } = config.band;
    const inBand = inBandOf({ counts: tasks.map(({ passes }) => passes), k, band });
    const shares = { validation: probe.validationShare, test: probe.testShare };
    // The split of a run's first probe: what it is tested on tests here too.
    const parts = memberSplit(inBand, shares, config.seed, 0);
    const available = parts.filter((part) => part !== 'test').length;
    const rate = inBand.filter(Boolean).length / inBand.length;

    const progress = workspace.progress('probe study');
    const reference = await workspace.reference();
    const layers = layersToStudy(options.layers, reference.config.layers, basename(reference.folder));
    const study = await studyProbes(
      { reference, tasks, k, band, seed: config.seed, domain: config.domain, versions: versions() },
      parts,
      {
        features: studyFeatures(layers, probe.features),
        l2: probe.l2,
        labelCounts: countsToStudy(options.labelCounts, available, Math.min(rate, 1 - rate)),
      },
      (done, total) => {
        workspace.checkpoint();
        progress.update(done, total, 'labels fitted');
      },
    );
    const chosen = study.curve.at(-1)!;
    const doubts = studyDoubts(chosen.test, chosen.over, study.tasks.test);
    const summary = {
      ...study,
      warnings: doubts.map(({ text }) => `the chosen probe, ${formatSpec(chosen.features)}, ${text}`),
      recommended: !doubts.some(({ isGrave }) => isGrave),
      yaml: settingsFor(study, ensembleSize(options.config)),
    };
    writeFileAtomic(join(store.folder, STUDY_FILES.json), `${JSON.stringify(summary, null, 2)}\n`);
    writeProbeStudy(join(store.folder, STUDY_FILES.html), { title: basename(resolve(store.folder)), ...summary });
    progress.done(`${STUDY_FILES.json} and ${STUDY_FILES.html} in ${store.folder}`);
    return summary;
  } finally {
    await workspace.close();
  }
}

/** @throws UserError when the run has not finished labelling, or labelled with other settings than those given. */
function requireLabels({ config, store }: Workspace, given: Config): void {
  if (!store.phaseFinished('label', ''))
    throw new UserError(`${store.folder} has no labels to study yet: run 'propel label' first`);
  const asJson = (settings: Config) => settings as unknown as { readonly [key: string]: Json };
  const changed = changedKeys(asJson(config), asJson(given)).filter(
    ({ name }) => !FREE_SETTINGS.has(name.split('.')[0] as keyof Config),
  );
  if (changed.length === 0) return;
  throw new UserError(
    `the labels of ${store.folder} come from other settings (${describeChanges(changed)}); give the settings they were made with, ` +
      'or the folder of another run with --out',
  );
}

function layersToStudy(wanted: readonly number[] | null, layers: number, model: string): number[] {
  if (wanted === null) return studyLayers(layers);
  const missing = wanted.find((layer) => layer > layers);
  if (missing === undefined) return [...new Set(wanted)].sort((a, b) => a - b);
  throw new UserError(
    `--layers: ${model} has no layer ${missing}; give 0, the embeddings, to ${layers}, its last layer`,
  );
}

function countsToStudy(wanted: readonly number[] | null, available: number, rarer: number): number[] {
  if (wanted === null) return studyCounts(available, rarer);
  const most = largest(wanted);
  if (most <= available) return [...new Set([...wanted, available])].sort((a, b) => a - b);
  throw new UserError(
    `--label-counts: ${most} labels are more than the ${available} there are to learn from; the others test`,
  );
}

/**
 * The `probe` settings for the chosen head and features. Members of an ensemble take different features while there are any, so the next
 * best of the same head follow.
 */
function settingsFor({ rows, curve }: ProbeStudy, members: number): string {
  const chosen = curve.at(-1)!;
  const ranked = rows.filter(
    ({ kind, labels, head }) => kind === 'probe' && labels === chosen.labels && head === chosen.head,
  );
  const written = (spec: FeatureSpec) =>
    `    - [${spec.map(({ layer, pooling }) => `{ layer: ${layer}, pooling: ${pooling} }`).join(', ')}]`;
  const lines = ranked.slice(0, members).map(({ features }) => written(features));
  return `${['probe:', `  head: ${chosen.head}`, '  features:', ...lines].join('\n')}\n`;
}
