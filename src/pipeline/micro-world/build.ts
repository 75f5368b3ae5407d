/** Behind `npm run build:micro-world`: corpus → tokenizer → the two models → their cards. Each part that is already there is kept. */
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointHash, openCheckpoint } from '../../lm/checkpoint.js';
import { createWasmSandbox } from '../../sandbox/wasm/wasm-sandbox.js';
import { writeFileAtomic } from '../../store/files.js';
import type { ProgressFactory } from '../progress.js';
import { buildCorpus } from './build-corpus.js';
import { readCorpus } from './corpus.js';
import { evaluateInSandbox } from './evaluation.js';
import type { CorpusRecipe, ModelRecipe } from './recipe.js';
import { evaluateHeldOut, trainFromScratch } from './training.js';
import type { HeldOutReport } from './training.js';

const TOKENIZER = 'tokenizer';
const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json'] as const;

export interface MicroWorldBuild {
  readonly corpus: CorpusRecipe;
  readonly models: readonly ModelRecipe[];
  /** Where corpus and training state are kept. */
  readonly cache: string;
  /** A folder a model is written here. */
  readonly target: string;
  readonly progress: ProgressFactory;
}

/** Build all that is not there yet. A stopped build goes on where it was. */
export async function buildMicroWorld(build: MicroWorldBuild): Promise<void> {
  const { corpus, cache } = build;
  await ensureCorpus(build);
  const documents = readCorpus(join(cache, 'train'));
  const heldOut = readCorpus(join(cache, 'held-out'));
  for (const recipe of build.models) {
    const folder = join(cache, recipe.name);
    mkdirSync(folder, { recursive: true });
    const progress = build.progress(`train ${recipe.name}`);
    const state = join(folder, 'state.safetensors');
    await trainFromScratch(folder, state, recipe.config, documents, recipe.training, ({ documents: done, of, loss }) =>
      progress.update(done, of, `loss ${loss.toFixed(3)}`),
    );
    const report = await evaluateHeldOut(folder, heldOut, recipe.training.threads);
    progress.done(`pass probability ${report.passProbability.toFixed(3)} on held-out tasks`);
    ship(build, recipe, report, corpus);
  }
}

async function ensureCorpus({ corpus, cache, progress }: MicroWorldBuild): Promise<void> {
  if (existsSync(join(cache, 'train', 'lengths.u8')) && existsSync(join(cache, TOKENIZER, TOKENIZER_FILES[0]))) return;
  const sandbox = await createWasmSandbox();
  const sampling = progress('corpus');
  try {
    const total = corpus.trainingDocuments + corpus.heldOutDocuments;
    await buildCorpus({
      ...corpus,
      evaluate: evaluateInSandbox(sandbox),
      corpusDirectory: cache,
      tokenizerDirectories: [join(cache, TOKENIZER)],
      onProgress: (done) => sampling.update(Math.min(done, total), total),
    });
    sampling.done(`${corpus.trainingDocuments} documents and ${corpus.heldOutDocuments} held out`);
  } finally {
    await sandbox.close();
  }
}

/** Copy checkpoint and tokenizer to where they are wanted, with a model card. */
function ship(build: MicroWorldBuild, recipe: ModelRecipe, report: HeldOutReport, corpus: CorpusRecipe): void {
  const target = join(build.target, recipe.name);
  mkdirSync(target, { recursive: true });
  for (const file of ['config.json', 'model.safetensors'])
    cpSync(join(build.cache, recipe.name, file), join(target, file));
  for (const file of TOKENIZER_FILES) cpSync(join(build.cache, TOKENIZER, file), join(target, file));
  writeModelCard(target, recipe, report, corpus);
}

/** `card.json` for programs, `README.md` in Hugging Face's form for people. */
export function writeModelCard(
  target: string,
  recipe: ModelRecipe,
  heldOut: HeldOutReport,
  corpus: CorpusRecipe,
): void {
  const { entries } = openCheckpoint(target);
  const parameters = [...entries.values()].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const card = {
    name: `micro-world ${recipe.name}`,
    purpose: recipe.purpose,
    parameters,
    sha256: checkpointHash(target),
    config: recipe.config,
    training: recipe.training,
    corpus,
    heldOut,
    rebuild: 'npm run build:micro-world',
  };
  writeFileAtomic(join(target, 'card.json'), `${JSON.stringify(card, null, 2)}\n`);
  const { config, training } = recipe;
  writeFileAtomic(
    join(target, 'README.md'),
    `---
license: mit
tags: [propel, code]
---
# ${card.name}

${recipe.purpose}

| | |
| --- | --- |
| parameters | ${parameters.toLocaleString('en')} (float32) |
| shape | ${config.layers} layers, width ${config.width}, ${config.heads} heads, feed-forward ${config.feedForward}, vocabulary ${config.vocabulary}; Llama's architecture |
| trained on | ${training.documents.toLocaleString('en')} documents, batches of ${training.batch}, AdamW, peak learning rate ${training.learningRate}; task tokens weigh ${training.taskWeight}, output tokens 1 |
| held-out loss | ${heldOut.taskLoss.toFixed(3)} nats a task token, ${heldOut.outputLoss.toFixed(3)} nats an output |
| held-out pass probability | ${heldOut.passProbability.toFixed(3)}, mean over ${corpus.heldOutDocuments} tasks |
| sha256 | \`${card.sha256}\` |

The documents are sampled from a grammar of short Python functions, their outputs computed in the sandbox; nothing in them was written by a
person. It knows nothing else: it is no general model of code.

Rebuild it with \`npm run build:micro-world\`.
`,
  );
}
