/**
 * A study of probes: every layer, pooling and head, learnt from more and more labels. The validation part alone chooses; the test part is
 * looked at once for each number of labels, by what was chosen.
 */
import { basename } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { RunError } from '../errors.js';
import { deriveSeed } from '../metrics/random.js';
import { candidatesFor } from './candidates.js';
import type { Candidate, Candidates } from './candidates.js';
import { HEADS } from './count-head.js';
import type { HeadKind } from './count-head.js';
import type { FeatureSpec } from './features.js';
import { heldOutMetrics, lossDifference } from './held-out.js';
import type { Difference, Estimate, HeldOutMetrics } from './held-out.js';
import { inBandOf } from './labels.js';
import type { Labels } from './labels.js';
import { byLoss, fitChoice, rankChoices } from './selection.js';
import type { Choice } from './selection.js';
import { memberSeed, nestedOrder, rowsWhere } from './split.js';
import type { Part } from './split.js';
import { TestPart } from './test-part.js';
import type { TypeMetrics } from './test-part.js';
import type { OnProgress, ProbeInput } from './train-probes.js';

export interface StudySettings {
  readonly features: readonly FeatureSpec[];
  /** Candidate penalties; the validation part chooses. */
  readonly l2: readonly number[];
  /** Numbers of labels, training and validation together, ascending; none more than there are. */
  readonly labelCounts: readonly number[];
}

/** How a candidate does on the validation part, learnt from the training part. */
export interface StudyRow {
  /** `probe`, or a baseline. */
  readonly kind: keyof Candidates;
  /** Of a probe, else empty. */
  readonly features: FeatureSpec;
  readonly head: HeadKind;
  /** Labels learnt and chosen from. */
  readonly labels: number;
  readonly l2: number;
  /** Mean −log P of the band. */
  readonly validationLoss: number;
  /** Its loss − that of the best probe of as many labels; what includes zero is not told apart from it. */
  readonly behind: Difference;
  readonly auroc: Estimate;
  readonly averagePrecision: Estimate;
  readonly calibrationError: Estimate;
}

/** What was chosen from so many labels, learnt from all of them, on the test part. */
export interface StudyPoint {
  readonly labels: number;
  readonly inBand: number;
  readonly features: FeatureSpec;
  readonly head: HeadKind;
  readonly l2: number;
  readonly test: HeldOutMetrics;
  readonly baselines: Readonly<Record<'length' | 'ngram', { readonly head: HeadKind; readonly test: HeldOutMetrics }>>;
  /** AUROC on the test part of what other draws of as many labels chose and learnt; none when these are all labels. */
  readonly otherDraws: readonly number[];
  /** Kind of task → the probe on the test tasks of that kind. */
  readonly byType: Readonly<Record<string, TypeMetrics>>;
  /** AUROC of the probe − that of the baseline. */
  readonly over: Readonly<Record<'length' | 'ngram', Difference>>;
}

export interface ProbeStudy {
  readonly format: 'propel-probe-study-1';
  readonly model: { readonly name: string; readonly hash: string };
  readonly k: number;
  readonly band: { readonly min: number; readonly max: number };
  readonly seed: number;
  readonly versions: Readonly<Record<string, string>>;
  readonly tasks: { readonly train: number; readonly validation: number; readonly test: number };
  readonly baseRate: number;
  readonly layers: readonly number[];
  readonly l2: readonly number[];
  /** By labels, then best first. */
  readonly rows: readonly StudyRow[];
  /** By labels; the last is the choice. */
  readonly curve: readonly StudyPoint[];
}

/** Resamples of an interval in the table of candidates, where there are many. */
const ROW_RESAMPLES = 200;
/** Draws of each number of labels that is less than all. */
const DRAWS = 3;
/** Least tasks in band, and out of it, among the labels of one number that learn, and among those that choose. */
const LEAST = { train: 8, validation: 2 };

/**
 * @param parts the part of each of the input's tasks, whose texts must be distinct; only what is chosen is ever measured on `test`
 * @throws RunError when some number of labels holds too few tasks in band or out of it
 */
export async function studyProbes(
  input: ProbeInput,
  parts: readonly Part[],
  settings: StudySettings,
  onProgress: OnProgress = () => {},
): Promise<ProbeStudy> {
  const study = new Study(input, parts, settings, onProgress);
  study.requireEnough();
  const candidates = await candidatesFor(
    input.reference,
    input.tasks.map(({ text }) => text),
    settings.features,
  );
  const rows: StudyRow[] = [];
  const curve: StudyPoint[] = [];
  for (const labels of settings.labelCounts) {
    const studied = await study.compare(labels, candidates);
    for (const row of studied.rows) rows.push(row);
    curve.push(studied.point);
  }
  const size = (part: Part) => parts.filter((of) => of === part).length;
  return {
    format: 'propel-probe-study-1',
    model: { name: basename(input.reference.folder), hash: input.reference.hash },
    k: input.k,
    band: { min: input.band.min, max: input.band.max },
    seed: input.seed,
    versions: input.versions,
    tasks: { train: size('train'), validation: size('validation'), test: size('test') },
    baseRate: study.inBand.filter(Boolean).length / parts.length,
    layers: [...new Set(settings.features.flat().map(({ layer }) => layer))].sort((a, b) => a - b),
    l2: settings.l2,
    rows,
    curve,
  };
}

interface Parts {
  readonly train: readonly number[];
  readonly validation: readonly number[];
}

class Study {
  readonly inBand: readonly boolean[];
  readonly #labels: Labels;
  readonly #settings: StudySettings;
  readonly #seed: number;
  /** Of each draw the rows that train and those that choose, in an order whose every beginning is a sample of them. */
  readonly #draws: readonly Parts[];
  readonly #test: TestPart;
  readonly #onProgress: OnProgress;
  #done = 0;

  constructor(input: ProbeInput, parts: readonly Part[], settings: StudySettings, onProgress: OnProgress) {
    this.#labels = { counts: input.tasks.map(({ passes }) => passes), k: input.k, band: input.band };
    this.inBand = inBandOf(this.#labels);
    this.#settings = settings;
    this.#seed = memberSeed(input.seed, 0);
    const ordered = (part: Part, draw: number) =>
      nestedOrder(rowsWhere(parts, part), this.inBand, deriveSeed(this.#seed, `study ${part}`, draw));
    this.#draws = Array.from({ length: DRAWS }, (_, draw) => ({
      train: ordered('train', draw),
      validation: ordered('validation', draw),
    }));
    const types = input.tasks.map(({ type }) => type ?? '');
    this.#test = new TestPart(rowsWhere(parts, 'test'), this.inBand, types, deriveSeed(this.#seed, 'intervals', 0));
    this.#onProgress = onProgress;
  }

  requireEnough(): void {
    for (const count of this.#settings.labelCounts) {
      const subset = this.#subset(count, 0);
      for (const part of ['train', 'validation'] as const) {
        const inside = subset[part].filter((row) => this.inBand[row]).length;
        const outside = subset[part].length - inside;
        if (Math.min(inside, outside) >= LEAST[part]) continue;
        const purpose = part === 'train' ? 'learn from' : 'choose by';
        throw new RunError(
          `of ${count} labels ${inside} in band and ${outside} out of it are there to ${purpose}, a study needs at least ` +
            `${LEAST[part]} of each: study larger numbers of labels, or label more tasks`,
        );
      }
    }
  }

  get #available(): number {
    return this.#draws[0]!.train.length + this.#draws[0]!.validation.length;
  }

  #drawsOf(count: number): number {
    return count < this.#available ? DRAWS : 1;
  }

  /** `count` labels, shared between training and validation as all of them are; within a draw more labels hold the fewer. */
  #subset(count: number, draw: number): Parts {
    const { train, validation } = this.#draws[draw]!;
    const training = Math.round((count * train.length) / this.#available);
    const first = (rows: readonly number[], size: number) => rows.slice(0, size).toSorted((a, b) => a - b);
    return { train: first(train, training), validation: first(validation, count - training) };
  }

  /** Every candidate learnt from `count` labels, and what was chosen on the test part. */
  async compare(count: number, candidates: Candidates): Promise<{ rows: StudyRow[]; point: StudyPoint }> {
    const parts = this.#subset(count, 0);
    const ranks = {
      probe: await this.#rankAll(candidates.probe, parts),
      // A baseline may take any head too: it gets the best of them.
      length: await this.#rankAll(candidates.length, parts),
      ngram: await this.#rankAll(candidates.ngram, parts),
    };
    const [best] = ranks.probe as [Choice];
    const specOf = ({ candidate }: Choice) => this.#settings.features[candidates.probe.indexOf(candidate)]!;
    const rows = (['probe', 'length', 'ngram'] as const).flatMap((kind) =>
      ranks[kind].map((choice): StudyRow => ({
        kind,
        features: kind === 'probe' ? specOf(choice) : [],
        labels: count,
        ...this.#onValidation(choice, best, parts.validation),
      })),
    );
    const logits = await this.#testLogits(best, parts);
    const against = async (baseline: Choice) => {
      const own = await this.#testLogits(baseline, parts);
      return { head: baseline.head, test: this.#test.measure(own), over: this.#test.difference(logits, own) };
    };
    const [length, ngram] = [await against(ranks.length[0]!), await against(ranks.ngram[0]!)];
    const point: StudyPoint = {
      labels: count,
      inBand: [...parts.train, ...parts.validation].filter((row) => this.inBand[row]).length,
      features: specOf(best),
      head: best.head,
      l2: best.l2,
      test: this.#test.measure(logits),
      byType: this.#test.byType(logits),
      otherDraws: await this.#otherDraws(count, candidates.probe),
      baselines: {
        length: { head: length.head, test: length.test },
        ngram: { head: ngram.head, test: ngram.test },
      },
      over: { length: length.over, ngram: ngram.over },
    };
    return { rows, point };
  }

  async #otherDraws(count: number, candidates: readonly Candidate[]): Promise<number[]> {
    const aurocs: number[] = [];
    for (let draw = 1; draw < this.#drawsOf(count); draw++) {
      const parts = this.#subset(count, draw);
      const [best] = await this.#rankAll(candidates, parts);
      aurocs.push(this.#test.auroc(await this.#testLogits(best!, parts)));
    }
    return aurocs;
  }

  /** Every candidate with every head, best first. */
  async #rankAll(candidates: readonly Candidate[], parts: Parts): Promise<Choice[]> {
    const choices: Choice[] = [];
    for (const candidate of candidates) {
      const ranked = await rankChoices(this.#labels, [candidate], HEADS, this.#settings.l2, parts);
      for (const choice of ranked) choices.push(choice);
      // Fits take time as their labels are many.
      this.#done += parts.train.length + parts.validation.length;
      this.#onProgress(this.#done, this.#total());
      // Let timers and signals have their turn.
      await setImmediate();
    }
    return byLoss(choices);
  }

  #total(): number {
    const { features, labelCounts } = this.#settings;
    const baselines = 2;
    return labelCounts.reduce((sum, count) => sum + count * (features.length * this.#drawsOf(count) + baselines), 0);
  }

  /** Band logits of the test part by a choice that is fitted to all of the labels. */
  async #testLogits(choice: Choice, { train, validation }: Parts): Promise<number[]> {
    const { logits } = await fitChoice(this.#labels, choice, [...train, ...validation]);
    return this.#test.take(logits);
  }

  #onValidation(choice: Choice, best: Choice, validation: readonly number[]) {
    const inBand = validation.map((row) => this.inBand[row]!);
    const seed = deriveSeed(this.#seed, 'study intervals', 0);
    const metrics = heldOutMetrics(inBand, choice.validationLogits, seed, ROW_RESAMPLES);
    return {
      head: choice.head,
      l2: choice.l2,
      validationLoss: choice.validationLoss,
      behind: lossDifference(inBand, choice.validationLogits, best.validationLogits),
      auroc: metrics.auroc,
      averagePrecision: metrics.averagePrecision,
      calibrationError: metrics.calibrationError,
    };
  }
}
