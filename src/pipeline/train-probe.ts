/** Phase 2, train-probe: an ensemble of probes on the frozen reference model's hidden states, from the labels. */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { RunError, UserError } from '../errors.js';
import type { CodeTask } from '../domain/azr/index.js';
import { distinctTexts } from '../probe/labels.js';
import type { Probe } from '../probe/probe.js';
import { keptPart } from '../probe/kept-parts.js';
import { saveProbe } from '../probe/probe-file.js';
import type { ProbeCard } from '../probe/probe-file.js';
import type { Part } from '../probe/split.js';
import { trainProbes } from '../probe/train-probes.js';
import { writeFileAtomic } from '../store/files.js';
import { KeptWork } from '../store/kept-work.js';
import type { Json } from '../store/rows.js';
import { ensembleSize } from './config.js';
import { searchEdits } from './probe-edits.js';
import { probeCards, probeWarnings } from './probe-report.js';
import { versions } from './versions.js';
import type { Workspace } from './workspace.js';

const PHASE = 'train-probe';
const FOLDER = 'probes';
/** What is done of a training that is not finished. */
const WORK_FOLDER = join(FOLDER, '.work');
const FOLDS = 5;
/** Held-out tasks that edits are searched on: enough for an interval, and a small part of what labelling took. */
const EDITED_TASKS = 48;
/** Predictions for every label by fits that never saw it: what the probe and its baselines are compared on. */
export const OUT_OF_FOLD_FILE = join(FOLDER, 'out-of-fold.json');

export interface ProbeSummary {
  readonly probes: readonly ProbeCard[];
  /** What speaks against rewarding by them, a line each. */
  readonly warnings: readonly string[];
  readonly seconds: number;
}

/** Train the run's probes unless they are there; what an earlier process has done of it stands. @throws UserError when the labels are not. */
export async function trainProbe(workspace: Workspace): Promise<ProbeSummary> {
  const { config, store } = workspace;
  const workFolder = join(store.folder, WORK_FOLDER);
  if (!store.phaseFinished(PHASE, '')) {
    if (!store.phaseFinished('label', ''))
      throw new UserError("there are no labels to train on yet: run 'propel label' first");
    const started = performance.now();
    const progress = workspace.progress('train-probe');
    const reference = await workspace.reference();
    const labelled = store
      .labelledTasks({ phase: 'label' })
      .map(({ id, rendered, passes, task }) => ({ id, text: rendered!, passes, task }));
    const input = {
      tasks: labelled.map(({ id, text, passes }) => ({ id, text, passes })),
      k: config.band.of,
      band: config.band,
      seed: config.seed,
      domain: { types: config.domain.types, notation: config.domain.notation },
      versions: versions(),
    };
    const settings = { ...config.probe, members: ensembleSize(config), folds: FOLDS };
    // Also how the engine computes, which the run has written down when it opened the reference.
    const follows = [reference.hash, input, settings, config.engine, store.run()!.versions];
    const of = createHash('sha256').update(JSON.stringify(follows)).digest('hex');
    const work = new KeptWork(workFolder, of);
    let fits = 0;
    const { members, outOfFold } = await trainProbes({ ...input, reference, work }, settings, (done, total) => {
      workspace.checkpoint();
      fits = total;
      progress.update(done, total + settings.members);
    });
    requireMinimum(
      members.map(({ card }) => card),
      config.probe.minimum,
    );
    const searched: { readonly probe: Probe; readonly card: ProbeCard }[] = [];
    for (const [member, { probe, card, parts }] of members.entries()) {
      progress.update(fits + member, fits + members.length, 'searching edits that keep the answers');
      const edits = await keptPart(work, `member-${member}-edits`, () =>
        searchEdits(workspace, probe, heldOutTasks(labelled, parts), config.seed),
      );
      searched.push({ probe, card: { ...card, edits } });
    }
    const folder = join(store.folder, FOLDER);
    const saved = searched.map(({ probe, card }) => ({ card, ...saveProbe(folder, probe, card) }));
    writeFileAtomic(join(store.folder, OUT_OF_FOLD_FILE), `${JSON.stringify(outOfFold)}\n`);
    store.finishPhase(PHASE, '', (performance.now() - started) / 1000, () => {
      for (const { card, sha256 } of saved) {
        store.saveProbe({
          name: card.name,
          card,
          path: join(FOLDER, `${card.name}.safetensors`),
          sha256,
        });
      }
    });
    progress.done(`held-out AUROC ${members.map(({ card }) => card.heldOut.auroc.value.toFixed(3)).join(', ')}`);
  }
  // Also after a kill between the last commit and this.
  rmSync(workFolder, { recursive: true, force: true });
  const cards = probeCards(store);
  return {
    probes: cards,
    warnings: probeWarnings(cards),
    seconds: store.secondsOf(PHASE, ''),
  };
}

/** Of the tasks that a member was not fitted to, the first ones. */
function heldOutTasks(
  labelled: readonly { readonly text: string; readonly task: Json }[],
  parts: readonly Part[],
): CodeTask[] {
  return distinctTexts(labelled)
    .filter((_, row) => parts[row] === 'test')
    .slice(0, EDITED_TASKS)
    .map(({ task }) => task as unknown as CodeTask);
}

/** @throws RunError when a probe's AUROC on held-out labels is below what the configuration asks for */
function requireMinimum(cards: readonly ProbeCard[], minimum: number | null): void {
  const weak = cards.filter(({ heldOut }) => minimum !== null && heldOut.auroc.value < minimum);
  if (weak.length === 0) return;
  const found = weak.map(({ name, heldOut, tasks }) => {
    const [low, high] = heldOut.auroc.interval.map((bound) => bound.toFixed(3));
    return `${name} has AUROC ${heldOut.auroc.value.toFixed(3)} (${low}–${high}) on ${tasks.test} held-out labels`;
  });
  throw new RunError(
    `${found.join(', ')}, below probe.minimum = ${minimum}: label more tasks, read other probe.features ('propel train-probe --sweep' ` +
      `compares them), or lower probe.minimum, and run 'propel train-probe --fresh'; no probe was kept`,
  );
}
