// Eight adapters in one rollout against one adapter in a rollout of as many samples, and against eight rollouts.
import { rmSync } from 'node:fs';
import { Engine } from '../../../dist/lm/engine.js';
import { LORA_16, randomAdapter, randomCheckpoint, randomTokens, WIDTH_256 } from './models.mjs';

const ADAPTERS = 8;
const SAMPLES = 64;
const PROMPT = 24;
const NEW_TOKENS = 40;

export async function adapterRows({ threads, rounds }) {
  const { checkpoint } = randomCheckpoint(WIDTH_256);
  const engine = await Engine.create({ provider: 'cpu', threads });
  try {
    const { folder, config } = checkpoint;
    const adapters = Array.from({ length: ADAPTERS }, (_, i) => randomAdapter(config, LORA_16, i + 1));
    const prompts = Array.from({ length: SAMPLES }, (_, i) => randomTokens(PROMPT, config.vocabulary, `prompt ${i}`));
    const share = SAMPLES / ADAPTERS;
    const groups = adapters.map((adapter, i) => ({
      adapter,
      prompts: prompts.slice(i * share, (i + 1) * share),
      seed: i,
    }));
    const common = { perPrompt: 1, maxNewTokens: NEW_TOKENS, temperature: 1, stops: [] };
    const together = () => engine.rolloutGroups(folder, { ...common, groups });
    const one = () => engine.rollout(folder, { ...common, prompts, seed: 0, adapter: adapters[0] });
    const apart = async () => {
      const completions = [];
      for (const group of groups) completions.push(await engine.rollout(folder, { ...common, ...group }));
      return completions;
    };
    const [a, b] = [await together(), await apart()];
    const tokens = (groupsOfCompletions) => groupsOfCompletions.flat().flatMap((completion) => completion.tokens);
    const theirs = tokens(b);
    const equal = tokens(a).filter((token, i) => token === theirs[i]).length / theirs.length;
    // Products of other shapes round differently: a uniform that falls on a boundary may draw the neighbour.
    if (equal < 0.95) throw new Error(`only ${Math.round(100 * equal)}% of the tokens agree`);
    await one();
    const times = { together: [], one: [], apart: [] };
    const timed = async (run, into) => {
      const started = performance.now();
      await run();
      into.push(performance.now() - started);
    };
    for (let round = 0; round < rounds; round++) {
      await timed(together, times.together);
      await timed(one, times.one);
      await timed(apart, times.apart);
    }
    const name = `rollout of ${ADAPTERS} adapters r = 16, 4 layers × 256: ${SAMPLES} × (${PROMPT} + ${NEW_TOKENS}) tokens`;
    const ours = Math.min(...times.together);
    return [
      { name, peer: 'one adapter', unit: 'ms', ours, theirs: Math.min(...times.one), lessIsBetter: true },
      { name, peer: 'eight rollouts', unit: 'ms', ours, theirs: Math.min(...times.apart), lessIsBetter: true },
    ];
  } finally {
    await engine.close();
    rmSync(checkpoint.folder, { recursive: true });
  }
}
