/** `propel serve` as a process: what trainers get from it, also by the shims, under load, under attack, and when it is ended. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../src/pipeline/config-file.js';
import { MAIN, PACKAGE, propelIn } from './propel-process.js';

/** Workers load compiled JavaScript, so what starts them comes from the build. */
const built = new URL('../dist/pipeline/reward-scorer.js', import.meta.url).href;
const { openRewardScorer } = (await import(built)) as typeof import('../src/pipeline/reward-scorer.js');

const PROBE = join(PACKAGE, 'probes', 'azr-micro', 'probe-0');
const KEY = 'a key of the tests';
const VALID = 'def f(x):\n    return x[::-1] + x\n>>> f([1, 2, 3])\n';
const UNPARSABLE = 'def f(x):\n    return';
const LOOP = 'def f(x):\n    while x: pass\n    return x\n>>> f(1)\n';

/** Every one another. */
const numbered = (i: number): string => `def f(x):\n    return [a + ${i} for a in x][::-1]\n>>> f([1, 2, ${i % 9}])\n`;

let server: ChildProcess;
let url = '';
let errors = '';

beforeAll(async () => {
  const args = [
    'serve',
    '--probe',
    PROBE,
    '--port',
    '0',
    '--api-key-env',
    'PROPEL_TEST_KEY',
    '--max-body',
    '4',
    '--end-token',
    '(end)',
    '--json',
  ];
  server = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, PROPEL_TEST_KEY: KEY },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  server.stderr!.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  let text = '';
  url = await new Promise<string>((resolve, reject) => {
    server.stdout!.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.endsWith('}\n')) resolve((JSON.parse(text) as { url: string }).url);
    });
    server.once('exit', () => reject(new Error(errors)));
  });
}, 180_000);

afterAll(() => void server.kill('SIGKILL'));

/** As a run of its own, unless it is told whose. */
async function post(
  path: string,
  body: unknown,
  session: string = randomUUID(),
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'x-propel-session': session },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** What a Python program prints, as JSON. */
function python(program: string): Promise<unknown> {
  // Every call is a run of its own.
  const child = spawn('python3', ['-c', program], {
    cwd: join(PACKAGE, 'scripts', 'integrations'),
    env: {
      ...process.env,
      PROPEL_REWARD_URL: url,
      PROPEL_REWARD_KEY: KEY,
      PROPEL_REWARD_SESSION: randomUUID(),
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('close', (code) => (code === 0 ? resolve(JSON.parse(stdout)) : reject(new Error(stderr))));
  });
}

describe('the reward', () => {
  it('is that of a run: gate, probe and clip', async () => {
    const scorer = await openRewardScorer({
      config: loadConfig('pipelines/azr-micro.yaml'),
      probes: [PROBE],
      reference: undefined,
      specialTokens: [],
      progress: () => ({ update: () => {}, done: () => {} }),
    });
    try {
      const [logits] = await scorer.score([VALID]);
      const { body } = await post('/v1/reward', { items: [VALID, UNPARSABLE].map((completion) => ({ completion })) });
      const [valid, invalid] = body['results'] as [{ reward: number; logits: Record<string, number> }, unknown];
      expect(valid.logits['probe-0']).toBeCloseTo(logits![0]!, 4);
      expect(valid.reward).toBeCloseTo(scorer.reward(logits!), 4);
      expect(invalid).toMatchObject({ status: 'invalid', reward: -3, outcome: 'unparsable' });
    } finally {
      await scorer.close();
    }
  }, 180_000);

  it('is what OpenRLHF, verl and TRL get', async () => {
    const samples = [VALID, UNPARSABLE, LOOP];
    const prompts = ['', '', ''];
    const { status, body } = await post('/get_reward', {
      query: samples.map((text) => `(end)<bos>${text}<eos>(end)`),
      prompts,
      labels: ['', '', ''],
    });
    expect(status).toBe(200);
    const rewards = body['rewards'] as number[];
    expect(rewards.slice(1)).toEqual([-3, -3]);
    expect(rewards[0]).toBeGreaterThanOrEqual(-2.5);
    const texts = `import asyncio, json\nimport propel_reward as p\nt = json.loads(${JSON.stringify(JSON.stringify(samples))})\n`;
    const verl = await python(
      `${texts}infos = [{}, None, {'propel_type': 'code_o'}]\n` +
        `all = [asyncio.run(p.compute_score('code', x, '', info, reward_kwarg=1)) for x, info in zip(t, infos)]\nprint(json.dumps(all))`,
    );
    expect(verl).toEqual([
      { score: rewards[0], valid: 1, repeat: 0, band_probability: expect.any(Number) },
      { score: -3, valid: 0, repeat: 0, band_probability: 0 },
      { score: -3, valid: 0, repeat: 0, band_probability: 0 },
    ]);
    // OpenRLHF makes tensors of what comes back; a list shows as well what they hold.
    const openRlhf = await python(
      `${texts}import sys, types\nsys.modules['torch'] = types.SimpleNamespace(tensor=lambda values, dtype: values, float32=None)\n` +
        `print(json.dumps([p.reward_func(['ask:' + x for x in t], ['ask:'] * 3, [''] * 3), p.reward_func([], [], [])]))`,
    );
    expect(openRlhf).toEqual([
      {
        rewards,
        scores: [expect.any(Number), 0, 0],
        extra_logs: { valid: [1, 0, 0], repeat: [0, 0, 0], band_probability: expect.any(Array) },
      },
      { rewards: [], scores: [], extra_logs: {} },
    ]);
    const trl = await python(
      `${texts}import pickle\nf = pickle.loads(pickle.dumps(p.propel_probe))\nlogged = {}\n` +
        `log = dict(log_extra=lambda name, column: logged.update({name: column}), log_metric=lambda name, value: logged.update({name: value}))\n` +
        `asked = {'role': 'user', 'content': 'write one'}\n` +
        `print(json.dumps([f(completions=t, prompts=t, trainer_state=None, propel_type=['code_o'] * 3, **log), logged, f(completions=[]),\n` +
        `  p.ProbeReward(session='${randomUUID()}')(completions=[[{'role': 'assistant', 'content': 'first'}, asked, {'role': 'assistant', 'content': x}] for x in t]),\n` +
        `  p.ProbeReward(session='${randomUUID()}')(completions=[[{'content': [{'type': 'text', 'text': x}, {'type': 'image'}]}] for x in t])]))`,
    );
    expect(trl).toEqual([
      rewards,
      {
        propel_outcome: ['ok', 'unparsable', 'timeout'],
        'propel/valid': 1 / 3,
        'propel/repeat': 0,
        'propel/band_probability': expect.any(Number),
        'propel/not_judged': 0,
      },
      [],
      rewards,
      rewards,
    ]);
    await expect(
      python(`${texts}asyncio.run(p.compute_score('', 'x', '', {'propel_type': 'code_x'}))`),
    ).rejects.toThrow(/propel: .*\/v1\/reward answers 400: .*items\.0\.type: code_x is none of code_o/);
  }, 180_000);
});

describe('what does nothing', () => {
  const rewardOf = async (completion: string, session: string): Promise<unknown> => {
    const { body } = await post('/v1/reward', { items: [{ completion }] }, session);
    return (body['results'] as { outcome: string; reward: number }[])[0];
  };

  it('earns nothing, and makes no other task of one', async () => {
    const plain = 'def f(x):\n    return x[:-1]\n>>> f([1, 2, 3])\n';
    const padded = [
      `def f(x):\n    return x[:-1] # ${'quite a task '.repeat(20)}\n>>> f([1, 2, 3])\n`,
      `def f(x):\n    "${'quite a task '.repeat(20)}"\n    return x[:-1]\n>>> f([1, 2, 3])\n`,
      `def f(x):\n\n    # ${'a task '.repeat(400)}\n\n    return ${' '.repeat(100)}x[:-1]   \n>>> f([1,  2, 3])\n`,
    ];
    const first = await rewardOf(plain, randomUUID());
    const gone = `${plain}1, 2\n\nHope this helps! ${'A good task. '.repeat(20)}`;
    for (const text of [...padded, gone]) expect(await rewardOf(text, randomUUID())).toEqual(first);
    const session = randomUUID();
    const outcomes = [];
    for (const text of padded) outcomes.push(((await rewardOf(text, session)) as { outcome: string }).outcome);
    expect(outcomes).toEqual(['ok', 'repeat', 'repeat']);
  });

  it('is nothing that the reference is not shown: a task beyond its context is none', async () => {
    const sum = Array.from({ length: 200 }, (_, i) => i % 9).join(' + ');
    expect(await rewardOf(`def f(x):\n    return x + ${sum}\n>>> f(3)\n`, randomUUID())).toMatchObject({
      status: 'invalid',
      reward: -3,
      outcome: 'too_long',
      detail: expect.stringMatching(/^a task of \d{3} tokens, the reference model reads 256$/),
    });
  });
});

describe('many clients', () => {
  it('get all their rewards, while memory stays as it is', async () => {
    const resident = (): number => {
      const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
    };
    const load = async (requests: number): Promise<number[]> => {
      let next = 0;
      const statuses: number[] = [];
      const client = async (): Promise<void> => {
        while (next < requests) {
          const { status, body } = await post('/get_reward', { query: [numbered(next++ % 60)] });
          statuses.push(status);
          expect(body['rewards']).toHaveLength(1);
        }
      };
      await Promise.all(Array.from({ length: 64 }, client));
      return statuses;
    };
    await load(200);
    const before = resident();
    const statuses = await load(1000);
    expect(statuses).toHaveLength(1000);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(resident() - before).toBeLessThan(64);
  }, 300_000);

  it('are served beside a hostile one', async () => {
    const loops = Array.from({ length: 1000 }, (_, i) => ({ completion: LOOP.replace('f(1)', `f(${i + 2})`) }));
    const started = performance.now();
    const hostile = post('/v1/reward', { items: loops, deadlineMs: 8000 }).then((answer) => {
      return { ...answer, milliseconds: performance.now() - started };
    });
    const huge = await post('/get_reward', { query: ['x'.repeat(100 << 20)] });
    expect(huge.status).toBe(413);
    expect(huge.body).toEqual({ error: { message: `a body of more than ${4 << 20} bytes` } });
    const honest = await post('/v1/reward', { items: [{ completion: VALID }, { completion: numbered(1000) }] });
    expect(honest.body['results']).toMatchObject([{ status: 'valid' }, { status: 'valid' }]);
    const { body, milliseconds } = await hostile;
    expect(milliseconds).toBeLessThan(20_000);
    const results = body['results'] as { status: string; outcome: string }[];
    expect(results).toHaveLength(1000);
    expect(results.at(-1)).toMatchObject({ status: 'error', outcome: 'deadline', reward: null });
    expect(results.every(({ outcome }) => outcome === 'timeout' || outcome === 'deadline')).toBe(true);
  }, 180_000);
});

describe('a server that cannot be', () => {
  it('for want of a probe, its reference, or the key, or by what it is given', () => {
    const serve = (...args: string[]) => propelIn(PACKAGE, ['serve', ...args]);
    expect(serve().stderr).toBe("propel: required option '--probe <files...>' not specified; see --help\n");
    expect(serve('--probe', 'nowhere').stderr).toMatch(/^propel: --probe nowhere\.safetensors does not exist; /);
    expect(serve('--probe', PROBE, '--reference', 'data/micro-world/solver').stderr).toMatch(
      /the probe was trained on model generator .*the reference is solver/,
    );
    const refused = (...args: string[]) => {
      const { code, stderr } = serve('--probe', PROBE, ...args);
      expect(code).toBe(2);
      return stderr;
    };
    expect(refused('--set', 'band={min: 4, max: 6, of: 8}')).toMatch(
      /^propel: --probe \S+ was trained for 1 to 3 passes of 8, band is 4 to 6 of 8: give [^\n]*\n$/,
    );
    expect(refused('--set', 'domain.types=[code_i]')).toMatch(
      /^propel: --probe \S+ was trained on code_o in doctest notation, the configuration has code_i in doctest [^\n]*\n$/,
    );
    expect(refused('--probe', PROBE)).toMatch(/^propel: --probe \S+ is given twice; give each probe once\n$/);
    expect(refused('--port', '99999')).toMatch(
      /^propel: [^\n]*'99999'[^\n]*Give a whole number from 0 to 65535\.[^\n]*\n$/,
    );
    expect(refused('--end-token', ' ')).toMatch(/^propel: [^\n]*Give the text of a token\.[^\n]*\n$/);
    const keyless = serve('--probe', PROBE, '--api-key-env', 'PROPEL_NO_SUCH_KEY');
    expect(keyless).toEqual({
      code: 2,
      stdout: '',
      stderr: 'propel: --api-key-env: the environment has no PROPEL_NO_SUCH_KEY; set it\n',
    });
  }, 180_000);
});

it('ends by SIGTERM once what is under way is answered', async () => {
  const running = post('/v1/reward', {
    items: [{ completion: numbered(2000) }, { completion: LOOP.replace('1', '7777') }],
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  server.kill('SIGTERM');
  const code = await new Promise((resolve) => server.once('exit', resolve));
  expect(code).toBe(0);
  expect((await running).body['results']).toMatchObject([
    { status: 'valid' },
    { status: 'invalid', outcome: 'timeout' },
  ]);
  expect(errors).toMatch(/no more requests are taken; those under way end first\nstopped\n$/);
}, 120_000);
