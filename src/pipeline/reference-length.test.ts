import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PACKAGE } from '../../tests/propel-process.js';
import type { Check } from '../domain/domain.js';
import { ReferenceLength } from './reference-length.js';

const reference = new ReferenceLength(join(PACKAGE, 'data', 'micro-world', 'generator'));
const valid = (task: string): Check<string> => ({
  valid: true,
  outcome: 'ok',
  detail: '',
  task,
  topic: 'other',
  facts: null,
});
const invalid: Check<string> = { valid: false, outcome: 'unparsable', detail: '', task: null, topic: '', facts: null };

test('a task of more tokens than the reference model has positions is too long, whatever it is in characters', async () => {
  // Of one token each, with one before them; the model has 256 positions.
  const checks = [valid('1'.repeat(255)), valid('1'.repeat(256)), invalid];
  const limited = await reference.limit(checks, (task) => task);
  expect(limited[0]).toBe(checks[0]);
  expect(limited[1]).toEqual({
    ...checks[1],
    valid: false,
    outcome: 'too_long',
    detail: 'a task of 257 tokens, the reference model reads 256',
    task: null,
  });
  expect(limited[2]).toBe(invalid);
});
