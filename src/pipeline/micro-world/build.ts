/** `npm run build:micro-world`: corpus → tokenizer → the two models → their cards. Each part that is already there is kept. */
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointHash, openCheckpoint } from '../../lm/checkpoint.js';
import { createWasmSandbox } from '../../sandbox/wasm/wasm-sandbox.js';
import { writeFileAtomic } from '../../store/files.js';
import { packageRoot } from '../paths.js';
import type { ProgressFactory } from '../progress.js';
import { buildCorpus } from './build-corpus.js';
import { readCorpus } from './corpus.js';
import { evaluateInSandbox } from './evaluation.js';
import { CORPUS_SEED, HELD_OUT_DOCUMENTS, RECIPES, TRAINING_DOCUMENTS } from './recipe.js';
import type { ModelRecipe } from './recipe.js';
import { evaluateHeldOut, trainFromScratch } from './training.js';
import type { HeldOutReport } from './training.js';

const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json'];

/** Build in `.cache/micro-world` and put what ships into `data/micro-world`. A stopped build goes on where it was. */
export async function buildMicroWorld(progress: ProgressFactory): Promise<void> {
  const cache = join(packageRoot(), '.cache', 'micro-world');
  await ensureCorpus(cache, progress);
  const documents = readCorpus(join(cache, 'train'));
  const heldOut = readCorpus(join(cache, 'held-out'));
  for (const recipe of RECIPES) {
    const folder = join(cache, recipe.name);
    mkdirSync(folder, { recursive: true });
    const training = progress(`train ${recipe.name}`);
    await trainFromScratch(folder, join(folder, 'state.safetensors'), recipe.config, documents, recipe.training, (p) =>
      training.update(p.documents, p.of, `loss ${p.loss.toFixed(3)}`),
    );
    const report = await evaluateHeldOut(folder, heldOut, recipe.training.threads);
    training.done(`pass probability ${report.passProbability.toFixed(3)} on held-out tasks`);
    ship(folder, recipe, report);
  }
}

async function ensureCorpus(cache: string, progress: ProgressFactory): Promise<void> {
  if (existsSync(join(cache, 'train', 'lengths.u8')) && existsSync(join(cache, 'tokenizer', TOKENIZER_FILES[0]!)))
    return;
  const sandbox = await createWasmSandbox();
  const corpus = progress('corpus');
  try {
    const total = TRAINING_DOCUMENTS + HELD_OUT_DOCUMENTS;
    await buildCorpus({
      seed: CORPUS_SEED,
      trainingDocuments: TRAINING_DOCUMENTS,
      heldOutDocuments: HELD_OUT_DOCUMENTS,
      evaluate: evaluateInSandbox(sandbox),
      corpusDirectory: cache,
      tokenizerDirectories: [join(cache, 'tokenizer')],
      onProgress: (done) => corpus.update(Math.min(done, total), total),
    });
    corpus.done(`${TRAINING_DOCUMENTS} documents and ${HELD_OUT_DOCUMENTS} held out`);
  } finally {
    await sandbox.close();
  }
}

/** Copy checkpoint and tokenizer to where the package ships them, with a model card. */
function ship(folder: string, recipe: ModelRecipe, report: HeldOutReport): void {
  const target = join(packageRoot(), 'data', 'micro-world', recipe.name);
  mkdirSync(target, { recursive: true });
  for (const file of ['config.json', 'model.safetensors']) cpSync(join(folder, file), join(target, file));
  for (const file of TOKENIZER_FILES) cpSync(join(folder, '..', 'tokenizer', file), join(target, file));
  writeModelCard(target, recipe, report);
  rmSync(join(folder, 'state.safetensors'));
}

/** `card.json` for programs, `README.md` in Hugging Face's form for people. */
function writeModelCard(target: string, recipe: ModelRecipe, heldOut: HeldOutReport): void {
  const { entries } = openCheckpoint(target);
  const parameters = [...entries.values()].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  const card = {
    name: `micro-world ${recipe.name}`,
    purpose: recipe.purpose,
    parameters,
    sha256: checkpointHash(target),
    config: recipe.config,
    training: recipe.training,
    corpus: { seed: CORPUS_SEED, documents: TRAINING_DOCUMENTS, heldOut: HELD_OUT_DOCUMENTS },
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
| held-out pass probability | ${heldOut.passProbability.toFixed(3)}, mean over ${HELD_OUT_DOCUMENTS} tasks |
| sha256 | \`${card.sha256}\` |

The documents are sampled from a grammar of short Python functions, their outputs computed in the sandbox; nothing in them was written by a
person. It knows nothing else: it is no general model of code.

Rebuild it with \`npm run build:micro-world\`.
`,
  );
}
