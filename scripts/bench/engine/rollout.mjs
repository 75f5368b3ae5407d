// A rollout in one Loop against one `run` per token: the same model, prompts, uniforms and sampling.
import { rmSync } from 'node:fs';
import { bindWeights } from '../../../dist/lm/checkpoint.js';
import { Decoder } from '../../../dist/lm/decoder.js';
import { rolloutGraph } from '../../../dist/lm/rollout-graph.js';
import { seededRandom } from '../../../dist/metrics/random.js';
import { Differentiable } from '../../../dist/onnx/differentiable.js';
import { floats, integers, scalar, Session } from '../../../dist/onnx/session.js';
import { MICRO_WORLD, randomCheckpoint, randomTokens } from './models.mjs';

const SAMPLES = 64;
const PROMPT = 24;
const NEW_TOKENS = 40;
/** No token has this id: every sample runs to the end. */
const NO_STOP = BigInt64Array.of(-1n);

export async function rolloutRows({ threads, rounds }) {
  const { checkpoint } = randomCheckpoint(MICRO_WORLD);
  try {
    const settings = { provider: 'cpu', threads, externalFolder: checkpoint.weightsFolder };
    const prompts = BigInt64Array.from(randomTokens(SAMPLES * PROMPT, MICRO_WORLD.vocabulary, 'prompts'), BigInt);
    const random = seededRandom('uniforms');
    const uniforms = Float32Array.from({ length: NEW_TOKENS * SAMPLES }, random);
    const loop = await Session.create(rolloutGraph(checkpoint, null, 'fused'), settings);
    const inLoop = async () => {
      const out = await loop.run({
        prompts: integers(prompts, [SAMPLES, PROMPT]),
        promptLengths: integers(new BigInt64Array(SAMPLES).fill(BigInt(PROMPT)), [SAMPLES]),
        uniforms: floats(uniforms, [NEW_TOKENS, SAMPLES]),
        stops: integers(NO_STOP, [1]),
        temperature: scalar(1),
      });
      return out.tokens.data;
    };
    const prefill = await Session.create(prefillGraph(checkpoint), settings);
    const step = await Session.create(stepGraph(checkpoint), settings);
    const perToken = async () => {
      const tokens = new BigInt64Array(NEW_TOKENS * SAMPLES);
      let state = await prefill.run({ ids: integers(prompts, [SAMPLES, PROMPT]) });
      for (let t = 0; t < NEW_TOKENS; t++) {
        const position = new BigInt64Array(SAMPLES).fill(BigInt(PROMPT + t));
        const row = uniforms.subarray(t * SAMPLES, (t + 1) * SAMPLES);
        const feeds = Object.fromEntries(Object.entries(state).map(([name, tensor]) => [`past.${name}`, tensor]));
        const { token, ...next } = await step.run({
          ...feeds,
          uniforms: floats(row, [SAMPLES, 1]),
          position: integers(position, [SAMPLES, 1]),
        });
        tokens.set(token.data, t * SAMPLES);
        state = next;
      }
      return tokens;
    };
    const [ours, theirs] = [[], []];
    const timed = async (run, times) => {
      const started = performance.now();
      const tokens = await run();
      times.push(performance.now() - started);
      return tokens;
    };
    const [a, b] = [await inLoop(), await perToken()];
    const equal = a.reduce((n, token, i) => n + (token === b[i] ? 1 : 0), 0) / a.length;
    // The two sum probabilities in another order: a uniform that falls on a boundary may draw the neighbour.
    if (equal < 0.95) throw new Error(`only ${Math.round(100 * equal)}% of the two rollouts' tokens agree`);
    for (let round = 0; round < rounds; round++) {
      await timed(inLoop, ours);
      await timed(perToken, theirs);
    }
    for (const session of [loop, prefill, step]) await session.release();
    const rate = (ms) => (1000 * SAMPLES * NEW_TOKENS) / ms;
    const name = `rollout in one Loop, micro-world: ${SAMPLES} × (${PROMPT} + ${NEW_TOKENS}) tokens`;
    return [
      {
        name,
        peer: 'one run a token',
        unit: 'tokens/s',
        ours: rate(Math.min(...ours)),
        theirs: rate(Math.min(...theirs)),
      },
    ];
  } finally {
    rmSync(checkpoint.folder, { recursive: true });
  }
}

/** Prompts [samples, time] → logits of the token after them, and every layer's keys and values. */
function prefillGraph(checkpoint) {
  const { config } = checkpoint;
  const g = new Differentiable('fused');
  const ids = g.input('ids', [SAMPLES, PROMPT], 'int64');
  g.defineDim('rows', g.int64([SAMPLES * PROMPT]));
  const decoder = new Decoder(g, config, bindWeights(g, checkpoint), null, PROMPT);
  let layer = 0;
  const x = decoder.causal(g, ids, undefined, (k, v) => {
    g.output(k, `k${layer}`);
    g.output(v, `v${layer++}`);
  });
  const stream = g.emitReshape(x, [SAMPLES, PROMPT, config.width]);
  const last = g.emitSlice(stream, 1, g.int64([PROMPT - 1]), g.int64([PROMPT]), 1);
  g.output(decoder.logits(g, g.emitReshape(last, [SAMPLES, config.width])), 'logits');
  return g;
}

/** Draw a token from the last logits, then run it: what a loop on the host does once a token, its cache going in and out. */
function stepGraph(checkpoint) {
  const { config } = checkpoint;
  const g = new Differentiable('fused');
  const decoder = new Decoder(g, config, bindWeights(g, checkpoint), null, PROMPT + NEW_TOKENS);
  const p = g.emitSoftmax(g.input('past.logits', [SAMPLES, config.vocabulary]));
  const uniforms = g.input('uniforms', [SAMPLES, 1]);
  const position = g.input('position', [SAMPLES, 1], 'int64');
  const cumulative = g.op('CumSum', [p, g.int64Scalar(1)], {}, p.shape);
  const below = g.cast(g.op('LessOrEqual', [cumulative, uniforms], {}, p.shape, 'bool'), 'int64');
  const rank = g.emitReduce('ReduceSum', below, [1], false);
  const token = g.emitBinary('Min', rank, g.int64Scalar(config.vocabulary - 1));
  const shape = [SAMPLES, config.kvHeads, 'past', config.headDim];
  const attention = (layer, q, k, v) => {
    const keys = g.emitConcat([g.input(`past.k${layer}`, shape), k], 2, 'seen');
    const values = g.emitConcat([g.input(`past.v${layer}`, shape), v], 2, 'seen');
    g.output(keys, `k${layer}`);
    g.output(values, `v${layer}`);
    const scores = g.emitMatMul(q, keys, { transB: true, alpha: 1 / Math.sqrt(config.headDim) });
    return g.emitMatMul(g.emitSoftmax(scores), values);
  };
  const h = decoder.layers(g, decoder.embed(g, token), [SAMPLES, 1], decoder.rotary(position), attention);
  g.output(decoder.logits(g, h), 'logits');
  g.output(token, 'token');
  return g;
}
