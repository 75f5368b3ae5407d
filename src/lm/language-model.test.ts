/** The engine's thread and the language model over it, from the built files: a worker is started from `.js`. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  addTokenizer,
  MICRO_WORLD_VOCABULARY,
  TINY_LLAMA,
  temporaryFolder,
  tinyCheckpoint,
} from '../../tests/tiny-checkpoint.js';
import type { RolloutRequest } from './request-checks.js';
import { initialAdapter } from './adapter.js';
import type { EngineThread as EngineThreadType } from './language-model.js';

// The built module, of the same types as the source.
const built = new URL('../../dist/lm/language-model.js', import.meta.url);
const { EngineThread, LanguageModel } = (await import(built.href)) as typeof import('./language-model.js');

const CONFIG = { ...TINY_LLAMA, vocabulary: MICRO_WORLD_VOCABULARY };

function tinyModelFolder(vocabulary = MICRO_WORLD_VOCABULARY): string {
  const folder = tinyCheckpoint({ ...CONFIG, vocabulary });
  addTokenizer(folder);
  return folder;
}

const REQUEST: RolloutRequest = {
  prompts: [[1], [1, 5, 9]],
  perPrompt: 3,
  maxNewTokens: 8,
  temperature: 1,
  stops: [2],
  seed: 7,
  adapter: null,
};

describe('EngineThread', () => {
  let engine: EngineThreadType;
  beforeAll(async () => {
    engine = await EngineThread.start({ provider: 'cpu', threads: 1 });
  });
  afterAll(() => engine.close());

  it('says which provider it took and what its self-test found', () => {
    expect(engine.choice.provider).toBe('cpu');
    expect(engine.choice.tests).toHaveLength(1);
    expect(engine.choice.tests[0]!.gradientError).toBeLessThan(1e-5);
  });

  it('samples, a prompt’s completions adjacent, the same again for the same seed', async () => {
    const model = await LanguageModel.open(engine, tinyModelFolder());
    const completions = await model.sample(REQUEST);
    expect(completions).toHaveLength(6);
    for (const { tokens, logProbs } of completions) expect(logProbs).toHaveLength(tokens.length);
    expect(await model.sample(REQUEST)).toEqual(completions);
  });

  it('gives back a UserError thrown in the thread as a UserError, and goes on', async () => {
    const model = await LanguageModel.open(engine, tinyModelFolder());
    await expect(model.sample({ ...REQUEST, prompts: [[MICRO_WORLD_VOCABULARY]] })).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 2,
      message: expect.stringContaining('token 280'),
    });
    expect(await model.sample(REQUEST)).toHaveLength(6);
  });

  it('answers calls made at once in the order they were made', async () => {
    const model = await LanguageModel.open(engine, tinyModelFolder());
    const done: number[] = [];
    await Promise.all([8, 1, 4].map((n) => model.sample({ ...REQUEST, maxNewTokens: n }).then(() => done.push(n))));
    expect(done).toEqual([8, 1, 4]);
  });

  it('trains in the thread, and hands out states that a new trainer goes on from', async () => {
    const model = await LanguageModel.open(engine, tinyModelFolder());
    const { layout, factors } = initialAdapter(model.config, { rank: 2, alpha: 2, targets: ['q_proj'] }, 1);
    const batch = {
      batch: 1,
      time: 3,
      ids: BigInt64Array.of(1n, 5n, 9n),
      labels: BigInt64Array.of(5n, 9n, 2n),
      mask: Float32Array.of(1, 1, 1),
      advantages: Float32Array.of(1, 1, 1),
      oldLogProbs: null,
      referenceLogProbs: null,
    };
    const loss = { tokens: 3, clip: 0.2, kl: 0, entropy: 0 };
    const adamW = { learningRate: 0.01, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxNorm: 1 };
    const trainer = await model.train(layout, factors);
    const { logProbs } = await trainer.accumulate(batch, loss);
    expect(logProbs).toEqual(await model.logProbs(batch, { layout, factors }));
    expect((await trainer.step(adamW)).gradientNorm).toBeGreaterThan(0);
    const state = await trainer.state();
    expect(state.step).toBe(1);
    const values = await trainer.values();
    expect(values).not.toEqual(factors);
    const resumed = await model.train(layout, state);
    expect(await resumed.values()).toEqual(values);
    await trainer.release();
    await expect(trainer.values()).rejects.toThrow('no trainer');
    await resumed.release();
  });
});

describe('EngineThread’s end', () => {
  it('refuses a provider that cannot run, with the reason', async () => {
    const start = EngineThread.start({ provider: 'cuda', threads: 1 });
    await expect(start).rejects.toMatchObject({ name: 'RunError', exitCode: 1 });
    await expect(start).rejects.toThrow(/cuda: .*CUDA libraries/);
  });

  it('refuses calls after close, and closing twice is closing once', async () => {
    const engine = await EngineThread.start({ provider: 'cpu', threads: 1 });
    await Promise.all([engine.close(), engine.close()]);
    await expect(engine.call('trainerState', 1)).rejects.toThrow(/engine's thread ended/);
  });

  it('lets the process end by itself after close', () => {
    const script = join(temporaryFolder(), 'end.mjs');
    writeFileSync(
      script,
      `import { EngineThread } from ${JSON.stringify(built.href)};
       const engine = await EngineThread.start({ provider: 'cpu', threads: 1 });
       await engine.close();
       console.log('closed');`,
    );
    const ended = spawnSync(process.execPath, [script], { encoding: 'utf8', timeout: 30_000 });
    expect(ended).toMatchObject({ status: 0, stdout: 'closed\n', stderr: '' });
  });
});

describe('LanguageModel.open', () => {
  let engine: EngineThreadType;
  beforeAll(async () => {
    engine = await EngineThread.start({ provider: 'cpu', threads: 1 });
  });
  afterAll(() => engine.close());

  const refusal = (folder: string): Promise<unknown> =>
    LanguageModel.open(engine, folder).then(
      () => 'opened',
      ({ name, message }: Error) => `${name}: ${message}`,
    );

  it('refuses a folder that is none', async () => {
    expect(await refusal(join(temporaryFolder(), 'nowhere'))).toMatch(
      /^UserError: .*nowhere\/config\.json cannot be read \(ENOENT\)/,
    );
  });
  it('refuses a checkpoint without its tokenizer', async () => {
    expect(await refusal(tinyCheckpoint(CONFIG))).toMatch(/^UserError: .*tokenizer\.json is missing/);
  });
  it('refuses a tokenizer that is not JSON', async () => {
    const folder = tinyModelFolder();
    appendFileSync(join(folder, 'tokenizer.json'), '}');
    expect(await refusal(folder)).toMatch(/^UserError: .*tokenizer\.json is not valid JSON/);
  });
  it('refuses a tokenizer that is JSON and no tokenizer', async () => {
    const folder = tinyModelFolder();
    writeFileSync(join(folder, 'tokenizer.json'), '{"a": 1}');
    expect(await refusal(folder)).toMatch(
      /^UserError: .*tokenizer\.json: model: .*; this is not the tokenizer\.json of a fast tokenizer/,
    );
  });
  it('refuses another model’s tokenizer', async () => {
    expect(await refusal(tinyModelFolder(100))).toMatch(
      /^UserError: .*tokenizer\.json has 280 tokens, config\.json says 100/,
    );
  });
});
