// Released models, imported from their GGUF files, beside transformers in float32: weights, tokens, logits, hidden states, greedy texts and LoRA gradients.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readAdapter } from '../../dist/lm/adapter-folder.js';
import { bindWeights, openCheckpoint } from '../../dist/lm/checkpoint.js';
import { Decoder } from '../../dist/lm/decoder.js';
import { Engine } from '../../dist/lm/engine.js';
import { importGguf } from '../../dist/lm/gguf/import.js';
import { readTensors } from '../../dist/lm/safetensors.js';
import { Tokenizer } from '../../dist/lm/tokenizer.js';
import { tokenInput } from '../../dist/lm/update-graph.js';
import { seededRandom } from '../../dist/metrics/random.js';
import { Differentiable } from '../../dist/onnx/differentiable.js';
import { floatData, integers, Session } from '../../dist/onnx/session.js';

/** Long enough for Gemma's window of 512 to be left in either; short, for every change of the product. */
const SIZE = process.env.PROPEL_PEERS_SHORT
  ? { tokens: 650, prompts: 6, newTokens: 32, gradient: { tokens: 160, scored: 32 } }
  : { tokens: 1500, prompts: 20, newTokens: 64, gradient: { tokens: 600, scored: 48 } };
const { tokens: TOKENS, prompts: PROMPTS, newTokens: NEW_TOKENS } = SIZE;
/** Tokens of the text of the gradients, and those of its end that are in the loss. */
const GRADIENT = SIZE.gradient;
/** Every so many tokens logits are compared. */
const STRIDE = 25;
const TEXTS = 2000;
const CHATS = 50;
/** Absolute; the largest relative to a layer's largest number; a tensor's difference by its norm, relative to the gradient's. */
const MOST = { logits: 1e-3, hidden: 1e-4, gradients: 1e-3 };
/** So cold that the likeliest token is drawn. */
const GREEDY = 1e-4;

const MODELS = [
  { name: 'smollm2', called: 'SmolLM2-135M-Instruct', digits: true },
  { name: 'gemma3', called: 'Gemma 3 270M', digits: false },
];

export const RELEASED = [
  {
    name: 'released',
    what: 'SmolLM2-135M-Instruct and Gemma 3 270M from GGUF: weights, tokens, logits, hidden states, greedy texts, LoRA gradients',
    environment: 'released',
    async run({ python, folder }) {
      const files = await python(['released.py', 'files', folder]);
      const figures = {};
      const faults = [];
      const models = MODELS.map(async (model) => [model, await compare(model, files[model.name], folder, python)]);
      for (const [model, found] of await Promise.all(models)) {
        faults.push(...found.faults.map((fault) => `${model.called}: ${fault}`));
        Object.assign(figures, found.figures);
      }
      if (faults.length > 0) throw new Error(faults.join('; '));
      return figures;
    },
  },
];

async function compare({ name, called, digits }, file, folder, python) {
  const imported = join(folder, name);
  await importGguf(file, { folder: imported, dtype: 'f32' });
  const tokenizer = await Tokenizer.open(imported);
  const ids = tokenizer.prompt(readingMatter()).slice(0, TOKENS + 1);
  const positions = Array.from({ length: TOKENS / STRIDE }, (_, i) => (i + 1) * STRIDE - 1);
  const texts = randomTexts(TEXTS);
  const prompts = greedyPrompts().map((text) => tokenizer.prompt(text));
  // A chat with the text of a special token is another's turn in transformers.
  const plain = texts.filter((text) => !tokenizer.specialTexts.some((special) => text.includes(special)));
  const chats = tokenizer.hasChat ? plain.slice(0, CHATS) : [];
  const place = join(folder, `${name}-asked`);
  mkdirSync(place);
  const asked = {
    imported,
    ids: ids.slice(0, TOKENS),
    positions,
    prompts,
    new: NEW_TOKENS,
    gradient_ids: ids.slice(0, GRADIENT.tokens + 1),
    scored: GRADIENT.scored,
    texts,
    chats,
    digits,
  };
  writeFileSync(join(place, 'asked.json'), JSON.stringify(asked));
  const peer = await python(['released.py', 'compare', file, place]);

  const encodings = JSON.parse(readFileSync(join(place, 'encodings.json'), 'utf8'));
  const ours = texts.map((text) => tokenizer.encode(text));
  const questions = chats.map((text) => tokenizer.question(text, 'auto'));
  const equal = (theirs, mine) => theirs.filter((row, i) => row.join() === mine[i].join()).length;
  const { logits, hidden } = await forward(imported, asked.ids, positions, place);
  const tokens = await greedy(imported, prompts, tokenizer.ends, peer.greedy);
  const gradients = gradientError(await gradientsOf(imported, place, asked.gradient_ids), place);
  const torch = gradientError(readTensors(join(place, 'gradients-float32.safetensors')), place);
  const counts = {
    'bit-equal tensors': [peer.tensors - peer.unequal.length, peer.tensors],
    'texts as released': [equal(encodings.released, ours), texts.length],
    'texts by transformers': [equal(encodings.imported, ours), texts.length],
    chats: [equal(encodings.chats, questions), chats.length],
    'greedy texts': [tokens.equal, prompts.length],
  };
  const errors = { logits, hidden, gradients };
  const faults = [
    ...Object.entries(counts).flatMap(([what, [good, all]]) => (good === all ? [] : [`${what}: ${good} of ${all}`])),
    ...Object.entries(errors).flatMap(([what, error]) =>
      // What float32 itself loses of a gradient, nobody has.
      error <= (what === 'gradients' ? Math.max(MOST.gradients, 1.1 * torch) : MOST[what])
        ? []
        : [`${what} are off by ${error.toExponential(1)}`],
    ),
    ...(encodings.begin.join() === tokenizer.prefix.join() ? [] : [`texts begin with ${tokenizer.prefix.join()}`]),
  ];
  const said = [
    ...Object.entries(counts).map(([what, [good, all]]) => `${good} of ${all} ${what}`),
    `${tokens.count} tokens`,
    ...Object.entries(errors).map(([what, error]) => `${what} ${error.toExponential(1)}`),
    `gradients of torch in float32 ${torch.toExponential(1)}`,
  ];
  return { faults, figures: { [called]: said.join(', ') } };
}

/** Where a difference is largest: of logits as it is, of each layer's stream relative to its largest number. */
async function forward(folder, ids, positions, place) {
  const checkpoint = openCheckpoint(folder);
  const { width, layers } = checkpoint.config;
  const g = new Differentiable('fused');
  const tokens = tokenInput(g);
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), null, 'time');
  const x = decoder.causal(g, tokens, (layer, stream) => g.output(stream, `layer.${layer}`));
  g.output(decoder.logits(g, g.emitGather(x, g.int64(positions))), 'logits');
  const session = await Session.create(g, { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder });
  try {
    const out = await session.run({ ids: integers(BigInt64Array.from(ids, BigInt), [1, ids.length]) });
    const theirs = (file) => {
      const bytes = readFileSync(join(place, file));
      return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    };
    const stream = theirs('hidden.bin');
    const size = ids.length * width;
    const relative = Array.from({ length: layers + 1 }, (_, layer) => {
      const reference = stream.subarray(layer * size, (layer + 1) * size);
      return largestDifference(floatData(out[`layer.${layer}`]), reference) / largest(reference);
    });
    return {
      logits: largestDifference(floatData(out.logits), theirs('logits.bin')),
      hidden: Math.max(...relative),
    };
  } finally {
    await session.release();
  }
}

function largest(values) {
  return values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
}

function largestDifference(ours, theirs) {
  if (ours.length !== theirs.length) return Infinity;
  return ours.reduce((most, x, i) => Math.max(most, Math.abs(x - theirs[i])), 0);
}

/** How many prompts go on as they do in transformers, up to the end token, and tokens in all. */
async function greedy(folder, prompts, ends, theirs) {
  const engine = await Engine.create({ provider: 'cpu', threads: 1 });
  const request = {
    perPrompt: 1,
    maxNewTokens: NEW_TOKENS,
    temperature: GREEDY,
    stops: [...ends],
    seed: 1,
    adapter: null,
  };
  const written = await engine.rollout(folder, { ...request, prompts });
  await engine.close();
  const rows = written.map(({ tokens }) => tokens);
  return {
    equal: rows.filter((tokens, i) => tokens.join() === theirs[i].join()).length,
    count: rows.reduce((sum, { length }) => sum + length, 0),
  };
}

/** The worst tensor's difference from float64, relative to its gradient, both by their norms. */
function gradientError(gradients, place) {
  const reference = readTensors(join(place, 'gradients-float64.safetensors'));
  const norm = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
  const errors = [...reference].map(([name, { data }]) => {
    const ours = gradients.get(name)?.data;
    return ours?.length === data.length ? norm(data.map((x, i) => x - ours[i])) / norm(data) : Infinity;
  });
  return reference.size === gradients.size ? Math.max(...errors) : Infinity;
}

async function gradientsOf(folder, place, ids) {
  const adapter = readAdapter(join(place, 'adapter'), openCheckpoint(folder).config);
  const engine = await Engine.create({ provider: 'cpu', threads: 1 });
  const trainer = await engine.createTrainer(folder, adapter.layout, adapter.factors);
  const time = ids.length - 1;
  const mask = new Float32Array(time).fill(1, time - GRADIENT.scored);
  const batch = {
    batch: 1,
    time,
    ids: BigInt64Array.from(ids.slice(0, -1), BigInt),
    labels: BigInt64Array.from(ids.slice(1), BigInt),
    mask,
    // The gradient of −log π, which is the loss of supervised training.
    advantages: mask,
    oldLogProbs: null,
    referenceLogProbs: null,
  };
  await engine.accumulate(trainer, batch, { tokens: GRADIENT.scored, clip: 0.2, kl: 0, entropy: 0 });
  const gradients = engine.takeGradients(trainer);
  await engine.releaseTrainer(trainer);
  await engine.close();
  return gradients;
}

/** A long text: English, tables and code of this repository. */
function readingMatter() {
  const read = (file) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');
  return `${read('docs/models.md')}\n${read('src/lm/decoder.ts')}`;
}

/** Twenty different ways to begin. */
function greedyPrompts() {
  const lines = readingMatter()
    .split('\n')
    .filter((line) => line.length > 60);
  return Array.from({ length: PROMPTS }, (_, i) => lines[i * Math.floor(lines.length / PROMPTS)].slice(0, 20 + 3 * i));
}

const PIECES = [
  'def f(x):',
  '\n    return ',
  'x1',
  'foo',
  '  ',
  '   ',
  '\t',
  '\r\n',
  '\n\n\n',
  '(',
  ')',
  '[',
  ']',
  "'s",
  "'LL",
  '==',
  '123',
  '4567',
  '..',
  'é',
  'A\u0301',
  'ﬁ',
  '日本',
  '한국',
  'क्षि',
  '😀',
  '👩‍👩‍👧',
  '\u00a0',
  '\u200d',
  '\ufeff',
  '\u0085',
  'İ',
  '１２',
  '٣٤',
  'ß',
  'Hello',
  ' world',
  '▁',
  '<bos>',
  '<start_of_turn>',
  '<|im_end|>',
  '</s>',
  'http://a.b/c?d=1&e',
];

/** Texts of odd pieces, and lines of real ones. */
function randomTexts(count) {
  const random = seededRandom(1);
  const lines = readingMatter().split('\n');
  return Array.from({ length: count }, (_, i) =>
    i % 4 === 0
      ? lines[Math.floor(random() * lines.length)] || 'empty'
      : Array.from({ length: 1 + Math.floor(random() * 12) }, () => PIECES[Math.floor(random() * PIECES.length)]).join(
          '',
        ),
  );
}
