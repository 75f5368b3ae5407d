/** Behind `npm run build:micro-world`: corpus → tokenizers → models → their cards. Each part that is already there is kept. */
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkpointHash, openCheckpoint } from '../../lm/checkpoint.js';
import { createWasmSandbox } from '../../sandbox/wasm/wasm-sandbox.js';
import { makeFolder, writeFileAtomic } from '../../store/files.js';
import type { ProgressFactory } from '../progress.js';
import { buildCorpus, CORPUS_PARTS, readDocuments, tokenizerDirectory } from './build-corpus.js';
import { evaluateInSandbox } from './evaluation.js';
import type { CorpusRecipe, ModelRecipe } from './recipe.js';
import { readBytePairEncoding } from './tokenizer-training.js';
import { DOCUMENT_KINDS, evaluateHeldOut, trainFromScratch } from './training.js';
import type { DocumentKind, HeldOutReport, TrainingStage } from './training.js';

const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json', 'generation_config.json'] as const;

export interface MicroWorldBuild {
  readonly corpus: CorpusRecipe;
  readonly models: readonly ModelRecipe[];
  /** Where corpus and training state are kept. */
  readonly cache: string;
  /** A folder a model is written here. */
  readonly target: string;
  readonly progress: ProgressFactory;
}

/** Losses on held-out documents, a kind each. */
export type HeldOutReports = Readonly<Partial<Record<DocumentKind, HeldOutReport>>>;

/** Build all that is not there yet. A stopped build goes on where it was. */
export async function buildMicroWorld(build: MicroWorldBuild): Promise<void> {
  const { corpus, cache } = build;
  await ensureCorpus(build);
  for (const recipe of build.models) {
    const folder = join(cache, recipe.name);
    makeFolder(folder);
    const tokenizer = readBytePairEncoding(tokenizerDirectory(cache, recipe.tokenizer));
    const kinds = DOCUMENT_KINDS.filter((kind) => recipe.training.stages.some(({ mixture }) => kind in mixture));
    const progress = build.progress(`train ${recipe.name}`);
    const documents = readDocuments(cache, 'train', tokenizer, kinds);
    const state = join(folder, 'state.safetensors');
    await trainFromScratch(folder, state, recipe.config, documents, recipe.training, ({ documents: done, of, loss }) =>
      progress.update(done, of, `loss ${loss.toFixed(3)}`),
    );
    const heldOut = readDocuments(cache, 'held-out', tokenizer, kinds);
    const reports: Partial<Record<DocumentKind, HeldOutReport>> = {};
    for (const kind of kinds) reports[kind] = await evaluateHeldOut(folder, heldOut[kind]!, recipe.training.threads);
    progress.done(
      kinds.map((kind) => `${kind}: pass probability ${reports[kind]!.passProbability.toFixed(3)}`).join(', '),
    );
    ship(build, recipe, reports, corpus);
  }
}

async function ensureCorpus({ corpus, cache, progress }: MicroWorldBuild): Promise<void> {
  if (CORPUS_PARTS.every((part) => existsSync(join(cache, part, 'lengths.u8')))) return;
  const sandbox = await createWasmSandbox();
  const sampling = progress('corpus');
  try {
    const total = corpus.trainingDocuments + corpus.heldOutDocuments;
    await buildCorpus({
      recipe: corpus,
      evaluate: evaluateInSandbox(sandbox),
      directory: cache,
      onProgress: (done) => sampling.update(Math.min(done, total), total),
    });
    sampling.done(`${corpus.trainingDocuments} documents and ${corpus.heldOutDocuments} held out`);
  } finally {
    await sandbox.close();
  }
}

/** Copy checkpoint and tokenizer to where they are wanted, with a model card. */
function ship(build: MicroWorldBuild, recipe: ModelRecipe, reports: HeldOutReports, corpus: CorpusRecipe): void {
  const target = join(build.target, recipe.name);
  makeFolder(target);
  for (const file of ['config.json', 'model.safetensors'])
    cpSync(join(build.cache, recipe.name, file), join(target, file));
  for (const file of TOKENIZER_FILES)
    cpSync(join(tokenizerDirectory(build.cache, recipe.tokenizer), file), join(target, file));
  writeModelCard(target, recipe, reports, corpus);
}

/** `card.json` for programs, `README.md` in Hugging Face's form for people. */
export function writeModelCard(
  target: string,
  recipe: ModelRecipe,
  heldOut: HeldOutReports,
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
| shape | ${config.family}: ${config.layers} layers, width ${config.width}, ${config.heads} heads (${config.kvHeads} of keys and values), feed-forward ${config.feedForward}, vocabulary ${config.vocabulary} |
| trained in | ${training.stages.map(describeStage).join('; then ')}; batches of ${training.batch}, AdamW; task tokens weigh ${training.taskWeight}, output tokens 1 |
| sha256 | \`${card.sha256}\` |

On ${corpus.heldOutDocuments.toLocaleString('en')} held-out documents of each kind:

| | nats a task token | nats an answer | probability of the answer |
| --- | --- | --- | --- |
${Object.entries(heldOut)
  .map(
    ([kind, { taskLoss, outputLoss, passProbability }]) =>
      `| ${kind} | ${taskLoss.toFixed(3)} | ${outputLoss.toFixed(3)} | ${passProbability.toFixed(3)} |`,
  )
  .join('\n')}

\`code_o\`, \`code_i\` and \`code_f\` are tasks as a generator writes them, with the call's output as the answer. A question of \`code_i\` shows the
program and its output, and other inputs than the one it was made from are right too, so a solver passes more often than this probability; a
question of \`code_f\` shows five pairs, for functions of one parameter and one expression: a smaller family than that of the other two, since
what a larger program does, five pairs do not tell a model of this size.

The documents are sampled from a grammar of short Python functions, their outputs computed in the sandbox; nothing in them was written by a
person. It knows nothing else: it is no general model of code.

Rebuild it with \`npm run build:micro-world\`.
`,
  );
}

function describeStage({ documents, mixture, learningRate }: TrainingStage): string {
  const shares = Object.entries(mixture).map(([kind, share]) => `${kind} ${(100 * share).toFixed(0)}%`);
  return `${documents.toLocaleString('en')} documents (${shares.join(', ')}), peak learning rate ${learningRate}`;
}
