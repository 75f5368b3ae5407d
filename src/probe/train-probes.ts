/** Training the probes of a run: an ensemble whose members differ, their baselines and cards, and out-of-fold predictions. */
import { basename } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { deriveSeed } from '../metrics/random.js';
import { candidatesFor } from './candidates.js';
import type { Candidates } from './candidates.js';
import type { Band, HeadKind } from './count-head.js';
import { formatSpec } from './features.js';
import type { FeatureSpec, ReferenceModel } from './features.js';
import { heldOutMetrics } from './held-out.js';
import type { OutOfFoldRow } from './held-out.js';
import { keptPart } from './kept-parts.js';
import { distinctTexts, inBandOf, requireBothClasses } from './labels.js';
import type { LabelledTask, Labels } from './labels.js';
import { float32Scale, Probe } from './probe.js';
import { doubtsOf } from './probe-file.js';
import type { ProbeCard } from './probe-file.js';
import { fitChoice, rankChoices } from './selection.js';
import type { Choice } from './selection.js';
import { assignFolds, memberSeed, memberSplit, resample, rowsWhere } from './split.js';
import type { Part } from './split.js';
import type { KeptWork } from '../store/kept-work.js';

export interface ProbeInput {
  readonly reference: ReferenceModel;
  readonly tasks: readonly LabelledTask[];
  /** Attempts a task. */
  readonly k: number;
  readonly band: Band;
  readonly seed: number;
  /** What the tasks are, for its card. */
  readonly domain: NonNullable<ProbeCard['domain']>;
  /** Of what makes the probe, for its card. */
  readonly versions: Readonly<Record<string, string>>;
  /** Where what is done is kept, for training that is broken off to go on. */
  readonly work?: KeptWork;
}

export interface ProbeSettings {
  readonly head: HeadKind;
  /** Candidate features; the validation part chooses. */
  readonly features: readonly FeatureSpec[];
  /** Candidate penalties: l2/2 · ‖weights‖² beside the mean loss; the validation part chooses. */
  readonly l2: readonly number[];
  readonly validationShare: number;
  readonly testShare: number;
  /** Members of the ensemble. */
  readonly members: number;
  /** Folds of the out-of-fold predictions. */
  readonly folds: number;
}

export interface TrainedProbe {
  readonly probe: Probe;
  readonly card: ProbeCard;
  /** The part that each task of a text of its own had in training this member. */
  readonly parts: readonly Part[];
}

export interface TrainedProbes {
  readonly members: readonly TrainedProbe[];
  readonly outOfFold: readonly OutOfFoldRow[];
}

/** Called after each part of the work, once it is kept; what it throws breaks the work off. */
export type OnProgress = (done: number, total: number) => void;

type Kind = keyof Candidates;
const KINDS: readonly Kind[] = ['probe', 'length', 'ngram'];

/**
 * Member 0 is the best candidate on all of its training part: the probe to use alone. Every further member has its own split, draws its
 * training part with replacement, and takes the best features that no earlier member has while there are any. Of tasks with the same text
 * the first alone is used, so that no text stands on both sides of a split.
 * @throws RunError when too few tasks are in or out of band to fit and test.
 */
export async function trainProbes(
  input: ProbeInput,
  settings: ProbeSettings,
  onProgress: OnProgress = () => {},
): Promise<TrainedProbes> {
  const trainer = await ProbeTrainer.create({ ...input, tasks: distinctTexts(input.tasks) }, settings, onProgress);
  const members: TrainedProbe[] = [];
  for (let member = 0; member < settings.members; member++) {
    members.push(await trainer.trainMember(member, new Set(members.map(({ probe }) => formatSpec(probe.spec)))));
  }
  return { members, outOfFold: await trainer.predictOutOfFold() };
}

class ProbeTrainer {
  readonly #input: ProbeInput;
  readonly #settings: ProbeSettings;
  readonly #labels: Labels;
  readonly #inBand: readonly boolean[];
  readonly #candidates: Candidates;
  readonly #onProgress: OnProgress;
  #done = 0;

  private constructor(input: ProbeInput, settings: ProbeSettings, candidates: Candidates, onProgress: OnProgress) {
    this.#input = input;
    this.#settings = settings;
    this.#labels = labelsOf(input);
    this.#inBand = inBandOf(this.#labels);
    this.#candidates = candidates;
    this.#onProgress = onProgress;
  }

  static async create(input: ProbeInput, settings: ProbeSettings, onProgress: OnProgress): Promise<ProbeTrainer> {
    requireBothClasses(labelsOf(input), 2 * settings.folds);
    const texts = input.tasks.map(({ text }) => text);
    const { work } = input;
    const resumable = work && { work, onPart: () => onProgress(0, partsOf(settings)) };
    const candidates = await candidatesFor(input.reference, texts, settings.features, resumable);
    return new ProbeTrainer(input, settings, candidates, onProgress);
  }

  async trainMember(member: number, taken: ReadonlySet<string>): Promise<TrainedProbe> {
    const { reference, k, band, domain, versions } = this.#input;
    const { features } = this.#settings;
    const seed = memberSeed(this.#input.seed, member);
    const shares = { validation: this.#settings.validationShare, test: this.#settings.testShare };
    const parts = memberSplit(this.#inBand, shares, this.#input.seed, member);
    const [whole, validation, test] = (['train', 'validation', 'test'] as const).map((part) =>
      rowsWhere(parts, part),
    ) as [number[], number[], number[]];
    const resampled = member > 0;
    const train = resampled ? resample(whole, deriveSeed(seed, 'resample', 0)) : whole;
    const measure = (logits: Float64Array) =>
      heldOutMetrics(
        test.map((row) => this.#inBand[row]!),
        test.map((row) => logits[row]!),
        deriveSeed(seed, 'intervals', 0),
      );

    const specOf = ({ candidate }: Choice) => features[this.#candidates.probe.indexOf(candidate)]!;
    const { ranked, chosen, head, logits } = await this.#part(`member-${member}-probe`, async () => {
      const choices = await this.#rank('probe', train, validation);
      const best = choices.find(({ candidate }) => !taken.has(candidate.name)) ?? choices[0]!;
      const described = (choice: Choice) => ({ features: specOf(choice), ...choiceOf(choice) });
      const fitted = await fitChoice(this.#labels, best, [...train, ...validation]);
      return { ranked: choices.map(described), chosen: described(best), ...fitted };
    });
    const baseline = (kind: 'length' | 'ngram') =>
      this.#part(`member-${member}-${kind}`, async () => {
        // Baselines stand beside every member as they are: fitted to all of its training part.
        const [best] = await this.#rank(kind, whole, validation);
        const fitted = await fitChoice(this.#labels, best!, [...whole, ...validation]);
        return { ...choiceOf(best!), heldOut: measure(fitted.logits) };
      });
    const measured: ProbeCard = {
      format: 'propel-probe-1',
      name: `probe-${member}`,
      model: { name: basename(reference.folder), hash: reference.hash },
      domain,
      features: chosen.features,
      width: reference.config.width,
      head: chosen.head,
      k,
      band: { min: band.min, max: band.max },
      l2: chosen.l2,
      candidates: ranked,
      tasks: { train: whole.length, validation: validation.length, test: test.length },
      resampled,
      baseRate: this.#inBand.filter(Boolean).length / this.#inBand.length,
      heldOut: measure(logits),
      baselines: { length: await baseline('length'), ngram: await baseline('ngram') },
      seed: this.#input.seed,
      versions,
    };
    const doubts = doubtsOf(measured).map(({ text }) => text);
    const card = doubts.length === 0 ? measured : { ...measured, warnings: doubts };
    return { probe: new Probe(card.features, head, float32Scale(logits)), card, parts };
  }

  /** Predictions for every task by fits and choices that never saw it. */
  async predictOutOfFold(): Promise<OutOfFoldRow[]> {
    const { folds, validationShare } = this.#settings;
    const seed = deriveSeed(this.#input.seed, 'probe folds', 0);
    const foldOf = assignFolds(this.#inBand, folds, seed);
    const predicted: Record<Kind, Float64Array> = {
      probe: new Float64Array(foldOf.length),
      length: new Float64Array(foldOf.length),
      ngram: new Float64Array(foldOf.length),
    };
    for (let fold = 0; fold < folds; fold++) {
      const inside = rowsWhere(
        foldOf.map((of) => of === fold),
        true,
      );
      const outside = rowsWhere(
        foldOf.map((of) => of === fold),
        false,
      );
      // Of what is left a share chooses, as for a member.
      const chooses = assignFolds(
        outside.map((row) => this.#inBand[row]!),
        Math.round(1 / validationShare),
        deriveSeed(seed, 'validation', fold),
      );
      const train = outside.filter((_, i) => chooses[i] !== 0);
      const validation = outside.filter((_, i) => chooses[i] === 0);
      for (const kind of KINDS) {
        const { logits } = await this.#part(`fold-${fold}-${kind}`, async () => {
          const [best] = await this.#rank(kind, train, validation);
          return fitChoice(this.#labels, best!, outside);
        });
        for (const row of inside) predicted[kind][row] = logits[row]!;
      }
    }
    return this.#input.tasks.map(({ id }, row) => ({
      taskId: id,
      inBand: this.#inBand[row]!,
      probeLogit: predicted.probe[row]!,
      lengthLogit: predicted.length[row]!,
      ngramLogit: predicted.ngram[row]!,
    }));
  }

  async #rank(kind: Kind, train: readonly number[], validation: readonly number[]): Promise<Choice[]> {
    const { head, l2 } = this.#settings;
    // A baseline may also be a plain logistic: it gets the better of the two.
    const heads: HeadKind[] = kind === 'probe' || head === 'band' ? [head] : [head, 'band'];
    return rankChoices(this.#labels, this.#candidates[kind], heads, l2, { train, validation });
  }

  /** A part of the work: done before, or now. */
  async #part<Value extends object>(name: string, run: () => Promise<Value>): Promise<Value> {
    const value = await keptPart(this.#input.work, name, run);
    this.#onProgress(++this.#done, partsOf(this.#settings));
    // Let timers and signals have their turn.
    await setImmediate();
    return value;
  }
}

function partsOf({ members, folds }: ProbeSettings): number {
  return KINDS.length * (members + folds);
}

function labelsOf({ tasks, k, band }: ProbeInput): Labels {
  return { counts: tasks.map(({ passes }) => passes), k, band };
}

function choiceOf({ head, l2, validationLoss }: Choice) {
  return { head, l2, validationLoss };
}
