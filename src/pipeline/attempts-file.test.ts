import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { codeDomainSchema } from '../domain/azr/index.js';
import { UserError } from '../errors.js';
import { readAttempts } from './attempts-file.js';
import type { AttemptedTask, RowSettings } from './attempts-file.js';

const SETTINGS: RowSettings = {
  band: { min: 1, max: 2, of: 4 },
  domain: codeDomainSchema.parse({ types: ['code_o', 'code_i', 'code_f'] }),
};
const CALL = { snippet: 'def f(x):\n    return x + 1', input: '1', output: '2' };
const INDUCTION = { snippet: 'def f(x):\n    return x + 1', inputs: ['1', '2'], outputs: ['2', '3'] };

async function read(rows: readonly object[], settings = SETTINGS): Promise<AttemptedTask[]> {
  const path = join(temporaryFolder(), 'attempts.jsonl');
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const tasks: AttemptedTask[] = [];
  for await (const task of readAttempts(path, settings)) tasks.push(task);
  return tasks;
}

async function refusal(...rows: object[]): Promise<string> {
  try {
    await read(rows);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    return (error as Error).message.replace(/^.*attempts\.jsonl, /, '');
  }
  throw new Error('it was read');
}

describe('tasks', () => {
  test('one call is code_o unless its type says code_i; its output is left to the sandbox', async () => {
    const [first, second] = await read([
      { ...CALL, passes: 0, k: 4 },
      { ...CALL, type: 'code_i', passes: 0, k: 4 },
    ]);
    expect(first).toMatchObject({ task: { type: 'code_o', input: '1', output: null }, recorded: ['2'] });
    expect(second!.task.type).toBe('code_i');
  });

  test('lists of inputs and outputs are code_f', async () => {
    const [task] = await read([{ ...INDUCTION, message: 'the next one', passes: 0, k: 4 }]);
    expect(task).toMatchObject({
      task: { type: 'code_f', inputs: ['1', '2'], outputs: null, message: 'the next one', shown: 5 },
      recorded: ['2', '3'],
    });
  });

  test('inputs that were shown are those that the domain shows', async () => {
    expect(await read([{ ...INDUCTION, shown: 5, passes: 0, k: 4 }])).toHaveLength(1);
    expect(await refusal({ ...INDUCTION, shown: 1, passes: 0, k: 4 })).toBe(
      'line 1: shown is 1, and domain.induction.shown is 5; set it to the row’s',
    );
  });

  test("CRUXEval's fields, imports and other fields do", async () => {
    const [first, second] = await read([
      { id: 'sample_0', code: 'def g(x):\n    return x', input: '1', output: '1', passes: 0, k: 4 },
      { ...CALL, imports: ['import math'], source: 'elsewhere', passes: 0, k: 4 },
    ]);
    expect(first!.task.snippet).toBe('def g(x):\n    return x\nf = g');
    expect(second!.task.snippet).toBe('import math\ndef f(x):\n    return x + 1');
  });

  test('a type that the domain does not write is refused at its line', async () => {
    const settings = { ...SETTINGS, domain: codeDomainSchema.parse({ types: ['code_o'] }) };
    await expect(
      read(
        [
          { ...CALL, passes: 0, k: 4 },
          { ...CALL, type: 'code_i', passes: 0, k: 4 },
        ],
        settings,
      ),
    ).rejects.toThrow(/line 2: a task of type code_i, and domain.types is code_o; name the type there$/);
  });

  test('a type that does not fit the fields is refused', async () => {
    expect(await refusal({ ...CALL, type: 'code_f', passes: 0, k: 4 })).toBe(
      'line 1: a task of type code_f has lists of inputs and outputs',
    );
    expect(await refusal({ ...CALL, type: 'code_x', passes: 0, k: 4 })).toContain('line 1: field type: ');
  });
});

describe('outcomes', () => {
  test('passes of k: the passes stand first', async () => {
    const [task] = await read([{ ...CALL, passes: 3, k: 4 }]);
    expect(task!.verdicts).toEqual(['pass', 'pass', 'pass', 'fail']);
  });

  test('verdicts stay as they are; fewer than band.of may be', async () => {
    const [all, some] = await read([
      { ...CALL, verdicts: ['fail', 'pass', 'error', 'fail'] },
      { ...CALL, verdicts: ['pass'] },
    ]);
    expect(all!.verdicts).toEqual(['fail', 'pass', 'error', 'fail']);
    expect(some!.verdicts).toEqual(['pass']);
  });

  test.each([
    [{ passes: 3, k: 8 }, 'k is 8, and band.of is 4; give outcomes of 4 attempts, or set band to 8'],
    [{ passes: 5, k: 4 }, '5 passes of k 4 attempts'],
    [{ passes: 1 }, 'an outcome is missing: give passes and k, or verdicts, a list of pass, fail and error'],
    [{ verdicts: ['pass'], passes: 1, k: 4 }, 'give either verdicts, or passes and k'],
    [{ verdicts: Array(5).fill('pass') }, '5 verdicts, and band.of is 4; give as many, or set band to those attempts'],
  ])('%j is refused at its line', async (outcome, message) => {
    expect(await refusal({ ...CALL, passes: 0, k: 4 }, { ...CALL, ...outcome })).toBe(`line 2: ${message}`);
  });

  test('a word that is no verdict is refused by its place', async () => {
    expect(await refusal({ ...CALL, verdicts: ['pass', 'timeout'] })).toContain('line 1: field verdicts.1: ');
  });
});
