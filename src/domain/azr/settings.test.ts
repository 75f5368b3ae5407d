import { expect, it } from 'vitest';
import { toJSONSchema } from 'zod';
import { codeDomainSchema } from './settings.js';

it('fills in defaults that suit an instructed model', () => {
  const settings = codeDomainSchema.parse({ validity: { distinctOutputs: { of: 8, atLeast: 6 } } });
  expect(settings).toMatchObject({
    types: ['code_o'],
    notation: 'fenced',
    examples: 3,
    induction: { inputs: 10, shown: 5 },
    limits: { timeoutMs: 2000, memoryMiB: 256 },
  });
  expect(settings.validity).toMatchObject({ everyParameterUsed: true, rejectRepeats: true, maxReprLength: 400 });
  expect(settings.validity.distinctOutputs).toEqual({
    of: 8,
    atLeast: 6,
    integers: [0, 40],
    items: [0, 9],
    letters: 'ABCDEF',
    minimumLength: 2,
  });
});

it.each([
  [{ notation: 'latex' }, 'notation'],
  [{ types: [] }, 'types'],
  [{ types: ['code_x'] }, 'types'],
  [{ induction: { inputs: 5, shown: 5 } }, 'shown must be less than inputs'],
  [{ validity: { maxQuestionLength: 0 } }, 'maxQuestionLength'],
  [{ types: ['code_o', 'code_o'] }, 'a type is named twice'],
  [{ validity: { maxReprLenght: 36 } }, 'maxReprLenght'],
  [{ validity: { distinctOutputs: { of: 4, atLeast: 6 } } }, 'atLeast must not exceed of'],
  [{ validity: { distinctOutputs: { of: 8, atLeast: 6, integers: [9, 0] } } }, 'must not exceed the second'],
  [{ limits: { memoryMiB: 8 } }, 'memoryMiB'],
])('refuses %j, naming the key', (settings, message) => {
  expect(JSON.stringify(codeDomainSchema.safeParse(settings).error?.issues)).toContain(message);
});

it('documents every field', () => {
  const undocumented: string[] = [];
  const visit = (schema: unknown, path: string): void => {
    const { properties = {}, anyOf = [] } = schema as {
      properties?: Record<string, { description?: string }>;
      anyOf?: unknown[];
    };
    for (const alternative of anyOf) visit(alternative, path);
    for (const [name, field] of Object.entries(properties)) {
      if (!field.description) undocumented.push(`${path}.${name}`);
      visit(field, `${path}.${name}`);
    }
  };
  visit(toJSONSchema(codeDomainSchema, { io: 'input' }), 'domain');
  expect(undocumented).toEqual([]);
});
