/** `propel warm-start` as a process: what it writes, that a kill changes nothing, what it refuses. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readAdapter } from '../src/lm/adapter-folder.js';
import { checkpointHash, openCheckpoint } from '../src/lm/checkpoint.js';
import { writeMergedWeights } from '../src/lm/merge.js';
import { sha256OfFile } from '../src/store/files.js';
import { errorLine, MAIN, PACKAGE, propelIn, temporaryFolder } from './propel-process.js';

const GENERATOR = join(PACKAGE, 'data/micro-world/generator');
const work = temporaryFolder();
const ROLE = ['--role', 'generator'];
const SETTINGS = ['--batch', '4', '--warm-up', '2', '--rank', '4', '--learning-rate', '0.002'];

/** Programs that the model does not write by itself. */
const rows = Array.from({ length: 60 }, (_, i) => ({
  prompt: '# output\n',
  completion: `def f(x):\n    return x + ${i}\n>>> f(${i % 7})\n`,
}));
const documents = join(work, 'pairs.jsonl');

interface Result {
  readonly modelHash: string | null;
  readonly updates: number;
  readonly documents: { readonly trained: number; readonly heldOut: number };
  readonly heldOut: Record<'before' | 'after', { readonly nats: number; readonly interval: [number, number] }>;
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
/** Updates that a training has saved. */
const updateOf = (state: string) => (JSON.parse(readFileSync(state, 'utf8')) as { update: number }).update;

function start(out: string, ...more: string[]) {
  return propelIn(work, [
    'warm-start',
    ...ROLE,
    '--documents',
    documents,
    ...SETTINGS,
    '--out',
    out,
    '--json',
    ...more,
  ]);
}

beforeAll(() => writeFileSync(documents, rows.map((row) => JSON.stringify(row)).join('\n') + '\n'));

describe('a warm start', () => {
  let whole: Result;
  beforeAll(() => {
    const { code, stdout, stderr } = start('whole');
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/warm start of the generator: 15 updates, held-out loss/);
    whole = JSON.parse(stdout) as Result;
  }, 120_000);

  it('learns: the held-out loss falls, by more than its interval', () => {
    expect(whole).toMatchObject({ updates: 15, documents: { trained: 57, heldOut: 3 } });
    const { before, after } = whole.heldOut;
    expect(after.nats).toBeLessThan(before.nats);
    for (const { nats, interval } of [before, after]) {
      expect(interval[0]).toBeLessThanOrEqual(nats);
      expect(interval[1]).toBeGreaterThanOrEqual(nats);
    }
  });

  it('writes a checkpoint in the types of its base, with its ends and a card', () => {
    const folder = join(work, 'whole');
    expect(checkpointHash(folder)).toBe(whole.modelHash);
    const types = (path: string) => [...openCheckpoint(path).entries].map(([name, { type }]) => [name, type]);
    expect(types(folder)).toEqual(types(GENERATOR));
    expect(JSON.parse(readFileSync(join(folder, 'generation_config.json'), 'utf8'))).toMatchObject({
      eos_token_id: [2, 3],
    });
    const card = readFileSync(join(folder, 'README.md'), 'utf8');
    for (const said of [
      '57 trained on, 3 held out; of the file pairs.jsonl',
      whole.modelHash!,
      'rank 4',
      checkpointHash(GENERATOR),
    ])
      expect(card).toContain(said);
    expect(card).not.toContain(work);
    expect(existsSync(`${folder}.training`)).toBe(false);
    expect(propelIn(work, ['models', 'check', 'whole', '--json']).code).toBe(0);
  });

  it('or the adapter, which is what was merged', () => {
    const { code, stdout, stderr } = start('adapter', '--adapter');
    expect(code, stderr).toBe(0);
    expect((JSON.parse(stdout) as Result).modelHash).toBeNull();
    const adapter = readAdapter(join(work, 'adapter'), openCheckpoint(GENERATOR).config);
    const [merged] = writeMergedWeights(GENERATOR, adapter, temporaryFolder()) as [string];
    expect(sha256OfFile(merged)).toBe(sha256OfFile(join(work, 'whole', 'model.safetensors')));
    expect(readFileSync(join(work, 'adapter', 'README.md'), 'utf8')).toContain('library_name: peft');
  }, 120_000);

  it('that is killed, again and again, comes to the same weights', async () => {
    const long = ['--passes', '12'];
    expect(start('long', ...long).code).toBe(0);
    const state = join(work, 'killed.training', 'state.json');
    const updates: number[] = [];
    for (let kill = 0; kill < 3; kill++) {
      const child = spawn(
        process.execPath,
        [MAIN, 'warm-start', ...ROLE, '--documents', documents, ...SETTINGS, ...long, '--out', 'killed'],
        { cwd: work, stdio: 'ignore' },
      );
      // As soon as it has got further than the one before, at another moment each time.
      const before = existsSync(state) ? updateOf(state) : 0;
      while (!existsSync(state) || updateOf(state) <= before) await pause(5);
      await pause(7 * kill);
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      updates.push(updateOf(state));
    }
    expect(updates).toEqual([...new Set(updates)].toSorted((a, b) => a - b));
    const { code, stdout } = start('killed', ...long);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Result).updates).toBe(180);
    const weights = (folder: string) => sha256OfFile(join(work, folder, 'model.safetensors'));
    expect(weights('killed')).toBe(weights('long'));
    expect(existsSync(join(work, 'killed.training'))).toBe(false);
  }, 240_000);

  it('does not go on from another one’s state', async () => {
    const child = spawn(
      process.execPath,
      [MAIN, 'warm-start', ...ROLE, '--documents', documents, ...SETTINGS, '--passes', '400', '--out', 'other'],
      { cwd: work, stdio: 'ignore' },
    );
    const state = join(work, 'other.training', 'state.json');
    while (!existsSync(state)) await new Promise((resolve) => setTimeout(resolve, 50));
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    const refused = start('other', '--passes', '3');
    expect(refused.code).toBe(2);
    expect(errorLine(refused)).toMatch(
      /other\.training holds another warm start that was broken off: .*; remove the folder to begin anew/,
    );
  }, 120_000);
});

describe('the micro-world’s documents', () => {
  it.each(['generator', 'solver'])(
    'of a %s are in the configuration’s types and notation',
    (role) => {
      const out = `micro-${role}`;
      const args = [
        'warm-start',
        'azr-mixed',
        '--role',
        role,
        '--micro-world',
        '30',
        ...SETTINGS,
        '--out',
        out,
        '--json',
      ];
      const { code, stdout, stderr } = propelIn(work, args);
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ documents: { trained: 28, heldOut: 2 } });
      expect(readFileSync(join(work, out, 'README.md'), 'utf8')).toContain('sampled from the micro-world');
    },
    120_000,
  );
});

describe('refused in a line', () => {
  const refusal = (content: string | null, ...args: string[]): string => {
    const file = join(work, 'bad.jsonl');
    if (content !== null) writeFileSync(file, content);
    const ended = propelIn(work, ['warm-start', ...ROLE, '--out', 'never', '--documents', 'bad.jsonl', ...args]);
    expect(ended.code).toBe(2);
    expect(existsSync(join(work, 'never'))).toBe(false);
    return errorLine(ended);
  };
  const good = JSON.stringify(rows[0]);

  it.each([
    [`${good}\n{"prompt": "a"}\n`, 'line 2: completion is missing; give {"prompt": "…", "completion": "…"}'],
    [
      `${good}\n{"prompt": 5, "completion": "b"}\n`,
      'line 2: prompt is no text; give {"prompt": "…", "completion": "…"}',
    ],
    [
      `${good}\n\n{"prompt": "a", "completion": ""}\n`,
      'line 3: completion is empty; give {"prompt": "…", "completion": "…"}',
    ],
    [`${good}\n[1]\n`, 'line 2: the row is no object; give {"prompt": "…", "completion": "…"}'],
    [`${good}\n{"prompt"`, 'line 2: the file ends in the middle of this row; fetch the file again, or remove the row'],
    [
      `${good}\n${JSON.stringify({ prompt: 'a', completion: 'b'.repeat(400) })}\n`,
      'line 2: 403 tokens with its end, and the model has 256 positions; leave it out',
    ],
  ])('a bad row: %j', (content, message) => {
    expect(refusal(content)).toBe(`propel: bad.jsonl, ${message}`);
  });

  it('too few of them, none, or two sources', () => {
    expect(refusal(`${good}\n`)).toBe('propel: 1 documents are too few to train on some and hold out 1; give more');
    expect(refusal('')).toMatch(/holds no rows/);
    expect(refusal(null, '--micro-world', '5')).toMatch(/^propel: give documents either as --documents/);
  });

  it('a folder that holds something, and a model that is none', () => {
    writeFileSync(join(work, 'bad.jsonl'), `${good}\n${good}\n`);
    const taken = propelIn(work, ['warm-start', ...ROLE, '--documents', documents, '--out', '.']);
    expect([taken.code, errorLine(taken)]).toEqual([
      2,
      expect.stringMatching(/is there already: nothing is overwritten/),
    ]);
    expect(refusal(null, '--from', 'nowhere')).toMatch(/^propel: --from nowhere does not exist/);
  });
});
