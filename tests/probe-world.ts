/** A run folder with probes whose logits can be worked out by hand, labels, and a solver that has made up its mind, for tests of arms. */
import { join } from 'node:path';
import { deriveSeed, seededRandom } from '../src/metrics/random.js';
import { loadConfig } from '../src/pipeline/config-file.js';
import type { Workspace } from '../src/pipeline/workspace.js';
import { saveProbe } from '../src/probe/probe-file.js';
import type { ProbeCard } from '../src/probe/probe-file.js';
import { Probe } from '../src/probe/probe.js';
import type { LogitScale } from '../src/reward/probe-reward.js';
import { taskId } from '../src/store/rows.js';
import type { BatchKey, TaskRow } from '../src/store/rows.js';
import { RunStore } from '../src/store/store.js';
import { standInReference } from './planted-tasks.js';

/** K, and the band: one or two passes of four. */
const K = 4;
const BAND = { min: 1, max: 2 };
const WIDTH = 3;

/** A probe whose logit is `slope` × the share of `a` among a text's tokens (begin token included) + `offset`. */
export interface PlantedProbe {
  readonly slope: number;
  readonly offset: number;
  readonly scale: LogitScale;
}

/** They rank texts in opposite orders: each is the minimum somewhere. */
export const PROBES: readonly PlantedProbe[] = [
  { slope: 10, offset: -2, scale: { mean: 0, sd: 2 } },
  { slope: -5, offset: 3, scale: { mean: 1, sd: 0.5 } },
];

/** Share of `a` among the tokens of a text. */
const shareOfA = (text: string): number => [...text].filter((letter) => letter === 'a').length / (text.length + 1);

/** The logit of a text by a planted probe. */
export function plantedLogit({ slope, offset }: PlantedProbe, text: string): number {
  return slope * shareOfA(text) + offset;
}

/** (logit − mean)/sd, clipped. */
export function plantedReward(probe: PlantedProbe, text: string, clip = 2.5): number {
  const { mean, sd } = probe.scale;
  return Math.min(clip, Math.max(-clip, (plantedLogit(probe, text) - mean) / sd));
}

export function probeOf({ slope, offset, scale }: PlantedProbe): Probe {
  const head = {
    kind: 'band',
    k: K,
    band: BAND,
    standardisation: { mean: new Float32Array(WIDTH), sd: new Float32Array(WIDTH).fill(1) },
    weights: Float32Array.of(slope, 0, 0),
    offsets: Float32Array.of(offset),
  } as const;
  return new Probe([{ layer: 1, pooling: 'mean' }], head, scale);
}

const ESTIMATE = { value: 0.8, interval: [0.7, 0.9] as [number, number] };
const HELD_OUT = {
  auroc: ESTIMATE,
  averagePrecision: ESTIMATE,
  calibrationError: ESTIMATE,
  brier: ESTIMATE,
  reliability: [],
};
const BASELINE = { head: 'band', l2: 0.1, validationLoss: 0.5, heldOut: HELD_OUT } as const;

function cardOf(name: string): ProbeCard {
  return {
    format: 'propel-probe-1',
    name,
    model: { name: 'stand-in', hash: standInReference.hash },
    features: [{ layer: 1, pooling: 'mean' }],
    width: WIDTH,
    head: 'band',
    k: K,
    band: BAND,
    l2: 0.1,
    candidates: [],
    tasks: { train: 60, validation: 20, test: 20 },
    resampled: false,
    baseRate: 0.3,
    heldOut: HELD_OUT,
    baselines: { length: BASELINE, ngram: BASELINE },
    seed: 0,
    versions: {},
  };
}

/** A valid task whose text, program and rendering are one. */
export function taskRow(key: BatchKey, item: number, text: string, fields: Partial<TaskRow> = {}): TaskRow {
  return {
    ...key,
    id: taskId(key, item),
    item,
    type: 'code_o',
    seed: 0,
    completion: text,
    tokens: 1,
    valid: true,
    outcome: 'ok',
    detail: '',
    topic: 'strings',
    structure: null,
    rendered: text,
    task: { type: 'code_o', snippet: text, input: '1', output: '1' },
    output: '1',
    ...fields,
  };
}

/** Texts of many lengths with passes that follow from the length, mostly: what the labels of a run are. */
function labelled(): { text: string; passes: number }[] {
  const random = seededRandom('probe world');
  const texts = new Set<string>();
  while (texts.size < 120) {
    const length = 5 + Math.floor(30 * random());
    texts.add(Array.from({ length }, () => 'abcdefgh'[Math.floor(8 * random())]!).join(''));
  }
  return [...texts].map((text) => ({ text, passes: random() < (text.length > 20 ? 0.85 : 0.1) ? 1 : K }));
}

function plantedPasses(text: string): number {
  return text.includes('x') ? -1 : [...text].filter((letter) => letter === 'p').length;
}

export interface ProbeWorld {
  readonly workspace: Workspace;
  readonly store: RunStore;
  /** What the solver was asked, call by call. */
  readonly asked: string[][];
}

/**
 * @param folder an empty one
 * @param passes how often the solver passes a question, below 0 when its attempts are lost; by default as often as a text has `p`, and never
 *   answered where it has `x`
 */
export function probeWorld(
  folder: string,
  settings: readonly string[] = [],
  passes: (question: string) => number = plantedPasses,
): ProbeWorld {
  const store = RunStore.open(folder);
  const config = {
    ...loadConfig('pipelines/azr-micro.yaml', [`band={min: ${BAND.min}, max: ${BAND.max}, of: ${K}}`, ...settings]),
    seed: 3,
  };
  for (const [i, planted] of PROBES.entries()) {
    const card = cardOf(`probe-${i}`);
    const { sha256 } = saveProbe(join(folder, 'probes'), probeOf(planted), card);
    store.saveProbe({ name: card.name, card, path: join('probes', `${card.name}.safetensors`), sha256 });
  }
  const key: BatchKey = { phase: 'label', arm: '', batch: 0 };
  const known = labelled();
  store.commitBatch(key, 0, () => {
    store.insertTasks(known.map(({ text }, i) => taskRow(key, i, text)));
    store.insertLabels(known.map((task, i) => ({ taskId: taskId(key, i), passes: task.passes, k: K, split: 'label' })));
  });
  store.finishPhase('label', '', 0);
  store.finishPhase('train-probe', '', 0);
  const asked: string[][] = [];
  const workspace = {
    config,
    store,
    domain: {
      kinds: ['code_o'],
      question: ({ snippet }: { snippet: string }) => snippet,
      grade: async (_: unknown, answers: string[]) => answers.map((answer) => (answer === 'right' ? 'pass' : 'fail')),
    },
    reference: async () => standInReference,
    solver: async () => ({
      attempt: async (questions: string[], k: number) => {
        asked.push(questions);
        return questions.map((question) =>
          Array.from({ length: k }, (_, i) => ({
            answer: i < passes(question) ? 'right' : 'wrong',
            status: passes(question) < 0 ? 'error' : 'answered',
          })),
        );
      },
    }),
    sandbox: async () => ({ size: 1 }),
    progress: () => ({ update() {}, done() {} }),
    checkpoint() {},
    passBytes: async () => null,
  };
  return { workspace: workspace as unknown as Workspace, store, asked };
}

/** The seed that a world's own streams derive from. */
export const worldSeed = (purpose: string, index: number): number => deriveSeed(3, purpose, index);
