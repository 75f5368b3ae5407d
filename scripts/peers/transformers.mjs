// transformers beside our decoder: tiny random checkpoints with odd configurations, each read by both. Equal, or refused by name; never silently another.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adapterInputs } from '../../dist/lm/adapter.js';
import { readAdapter, writeAdapter } from '../../dist/lm/adapter-folder.js';
import { readTensors } from '../../dist/lm/safetensors.js';
import { freshState, Trainer } from '../../dist/lm/trainer.js';
import { Decoder } from '../../dist/lm/decoder.js';
import { tokenInput } from '../../dist/lm/update-graph.js';
import { bindWeights, openCheckpoint } from '../../dist/lm/checkpoint.js';
import { Differentiable } from '../../dist/onnx/differentiable.js';
import { floatData, floats, integers, Session } from '../../dist/onnx/session.js';

const COUNT = process.env.PROPEL_PEERS_CONFIGURATIONS ?? '400';
const ADAPTERS = '100';
const SEED = process.env.PROPEL_PEERS_SEED ?? '1';
/** Of logits, whose largest are about 10. */
const TOLERANCE = 2e-3;
/** Relative to the largest; float32 on both sides. */
const GRADIENT_TOLERANCE = 1e-3;

export const TRANSFORMERS = [
  {
    name: 'transformers',
    what: `${COUNT} configurations of all families: equal logits, or refused by name`,
    environment: 'trainers',
    async run({ python, folder }) {
      const { ids } = await python(['decoders.py', 'make', folder, COUNT, SEED]);
      const cases = readdirSync(folder).filter((name) => name.startsWith('case-'));
      const refused = new Map();
      const lengths = {};
      for (const name of cases) {
        // What transformers does not make is no one's model.
        if (existsSync(join(folder, name, 'peer.txt'))) continue;
        try {
          lengths[name] = Math.min(ids.length, openCheckpoint(join(folder, name)).config.maxPositions);
        } catch (error) {
          if (error.name !== 'UserError') throw error;
          refused.set(name, error.message);
        }
      }
      const asked = join(folder, 'asked.json');
      writeFileSync(asked, JSON.stringify(lengths));
      const peer = await python(['decoders.py', 'logits', folder, asked]);
      const differing = [];
      let equal = 0;
      let peerRefuses = 0;
      for (const [name, length] of Object.entries(lengths)) {
        if (peer[name] !== null) {
          peerRefuses += 1;
          continue;
        }
        const off = await distance(join(folder, name), join(folder, name), ids.slice(0, length), null);
        if (off < TOLERANCE) equal += 1;
        else differing.push(`${describe(folder, name)}: off by ${off.toFixed(3)}`);
      }
      if (process.env.PROPEL_PEERS_VERBOSE) {
        for (const [name, why] of refused)
          console.log(`refused  ${describe(folder, name)}: ${why.replace(/^.*?: /, '')}`);
        for (const [name, why] of Object.entries(peer)) if (why) console.log(`peer  ${describe(folder, name)}: ${why}`);
      }
      if (differing.length > 0) {
        for (const line of differing) console.log(`  ${line}`);
        throw new Error(
          `${differing.length} of ${cases.length} configurations differ silently (${equal} equal, ${refused.size} refused)`,
        );
      }
      return {
        configurations: cases.length,
        equal,
        refused: refused.size,
        'refused by transformers': cases.length - equal - refused.size,
      };
    },
  },
];

export const PEFT = [
  {
    name: 'peft',
    what: `${ADAPTERS} adapters with PEFT's settings: equal logits and gradients, there and back, or refused by name`,
    environment: 'trainers',
    async run({ python, folder }) {
      const { ids } = await python(['decoders.py', 'adapters', folder, ADAPTERS, SEED]);
      const cases = readdirSync(folder);
      const differing = [];
      const read = [];
      let [equal, refused] = [0, 0];
      for (const name of cases) {
        const place = join(folder, name);
        if (existsSync(join(place, 'peer.txt'))) continue;
        const { config } = openCheckpoint(join(place, 'base'));
        let adapter;
        try {
          adapter = readAdapter(join(place, 'adapter'), config);
        } catch (error) {
          if (error.name !== 'UserError') throw error;
          refused += 1;
          if (process.env.PROPEL_PEERS_VERBOSE)
            console.log(`refused  ${settings(place)}: ${error.message.replace(/^.*?: /, '')}`);
          continue;
        }
        const off = await distance(place, join(place, 'base'), ids, adapter);
        if (off < TOLERANCE) equal += 1;
        else differing.push(`${settings(place)}: off by ${off.toFixed(3)}`);
        writeAdapter(join(place, 'again'), adapter, join(place, 'base'));
        read.push(name);
      }
      // What is written of it here, PEFT reads as the same adapter; and its factors would be trained the same way.
      const again = await python(['decoders.py', 'again', folder]);
      for (const name of read) {
        const place = join(folder, name);
        if (!(again[name] < TOLERANCE)) differing.push(`${settings(place)}: written again, off by ${again[name]}`);
        const gradient = await gradientDistance(place, ids);
        if (!(gradient < GRADIENT_TOLERANCE))
          differing.push(`${settings(place)}: gradients off by ${gradient.toFixed(4)}`);
      }
      if (differing.length > 0) {
        for (const line of differing) console.log(`  ${line}`);
        throw new Error(
          `${differing.length} of ${cases.length} adapters differ silently (${equal} equal, ${refused} refused)`,
        );
      }
      return { adapters: cases.length, equal, refused, 'refused by peft': cases.length - equal - refused };
    },
  },
];

const settings = (place) => readFileSync(join(place, 'changes.json'), 'utf8');

const KEYS =
  /^(attention_bias|mlp_bias|hidden_act|head_dim|num_key|rms|rope|original|partial|sliding|use_sl|max_w|layer_t|max_pos|tie)/;

function describe(folder, name) {
  const read = (file) => JSON.parse(readFileSync(join(folder, name, file), 'utf8'));
  const { family, changes, file } = read('changes.json');
  const config = Object.fromEntries(Object.entries(read('config.json')).filter(([key]) => KEYS.test(key)));
  return `${name} ${family} [${[...changes, ...(file ? [`file: ${file}`] : [])].join(', ')}] ${JSON.stringify(config)}`;
}

/** How far our logits of one text are from those in `place`. */
async function distance(place, folder, ids, adapter) {
  const bytes = readFileSync(join(place, 'logits.bin'));
  const theirs = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const ours = await logitsOf(folder, ids, adapter);
  if (ours.length !== theirs.length)
    throw new Error(`${place}: ${ours.length} logits, transformers has ${theirs.length}`);
  return ours.reduce((most, x, i) => Math.max(most, Math.abs(x - theirs[i])), 0);
}

/** Largest |difference| of a factor's gradient, relative to the largest entry of all: of the mean log-probability of each next token. */
async function gradientDistance(place, ids) {
  const checkpoint = openCheckpoint(join(place, 'base'));
  const adapter = readAdapter(join(place, 'again'), checkpoint.config);
  const host = { provider: 'cpu', threads: 1 };
  const trainer = await Trainer.create(checkpoint, adapter.layout, freshState(adapter.factors), host);
  try {
    const time = ids.length - 1;
    const ones = new Float32Array(time).fill(1);
    const [text, labels] = [ids.slice(0, -1), ids.slice(1)].map((row) => BigInt64Array.from(row, BigInt));
    const tokens = { batch: 1, time, ids: text, labels, mask: ones };
    const batch = { ...tokens, advantages: ones, oldLogProbs: null, referenceLogProbs: null };
    await trainer.accumulate(batch, { tokens: time, clip: 1, kl: 0, entropy: 0 });
    const theirs = readTensors(join(place, 'gradients.safetensors'));
    let [most, off] = [0, 0];
    for (const [name, { data }] of trainer.gradients()) {
      const other = theirs.get(`base_model.model.${name}.weight`).data;
      for (const [i, x] of data.entries()) {
        most = Math.max(most, Math.abs(other[i]));
        off = Math.max(off, Math.abs(x - other[i]));
      }
    }
    return off / most;
  } finally {
    await trainer.release();
  }
}

/** Logits of one text, [time · vocabulary]. */
async function logitsOf(folder, ids, adapter) {
  const checkpoint = openCheckpoint(folder);
  const g = new Differentiable('fused');
  const tokens = tokenInput(g);
  const values = adapter ? adapterInputs(g, checkpoint.config, adapter.layout).values : null;
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), values, 'time');
  g.output(decoder.logits(g, decoder.causal(g, tokens)), 'logits');
  const session = await Session.create(g, { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder });
  const factors = Object.fromEntries(
    [...(adapter?.factors ?? [])].map(([name, { data, shape }]) => [name, floats(data, shape)]),
  );
  try {
    const asked = integers(BigInt64Array.from(ids, BigInt), [1, ids.length]);
    return floatData((await session.run({ ids: asked, ...factors })).logits);
  } finally {
    await session.release();
  }
}
