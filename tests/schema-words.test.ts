/** What each kind of refusal says. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { nearest, sayFaultsInWords, shown } from '../src/schema-words.js';

sayFaultsInWords();

const said = (schema: z.ZodType, value: unknown): string[] =>
  schema.safeParse(value).error!.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);

describe('a fault', () => {
  const CHOICE = z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('wasm') }),
    z.strictObject({ kind: z.literal('docker'), image: z.string().optional() }),
  ]);

  it.each<[z.ZodType, unknown, string]>([
    [z.object({ a: z.string() }), {}, 'a: missing; give a text'],
    [z.object({ a: z.string() }), [], ': give a map, not a list'],
    [z.number(), 'many', ': give a number, not "many"'],
    [z.int(), '3', ': give a whole number, not "3"'],
    [z.int(), 1.5, ': give a whole number, not 1.5'],
    [z.number(), Infinity, ': give a finite number'],
    [z.boolean(), 'yes', ': give true or false, not "yes"'],
    [z.array(z.string()), { a: 1 }, ': give a list, not a map'],
    [z.string(), null, ': give a text, not null'],
    [z.number().min(2), 1, ': give a number of at least 2, not 1'],
    [z.number().positive(), 0, ': give a number above 0, not 0'],
    [z.number().lt(0.5), 0.5, ': give a number below 0.5, not 0.5'],
    [z.number().max(1), 2, ': give a number of at most 1, not 2'],
    [z.int(), 1e300, ': give a whole number of at most 9007199254740991, not 1e+300'],
    [z.array(z.string()).nonempty(), [], ': give at least 1 item'],
    [z.string().min(2), 'a', ': give at least 2 characters'],
    [z.enum(['mean', 'last']), 'men', ': give mean or last, not "men"; did you mean mean?'],
    [z.literal('code'), 'x', ': give code, not "x"'],
    [z.union([z.literal('auto'), z.int()]), 'x', ': give auto or a whole number, not "x"'],
    [z.union([z.literal('auto'), z.int()]), undefined, ': missing; give auto or a whole number'],
    [CHOICE, { kind: 'doker' }, 'kind: give wasm or docker, not "doker"; did you mean docker?'],
    [CHOICE, {}, 'kind: missing; give wasm or docker'],
    [z.strictObject({ steps: z.int().optional() }), { stepz: 1 }, ': unknown key stepz; did you mean steps?'],
    [z.strictObject({ steps: z.int().optional() }), { x: 1, y: 2 }, ': unknown keys x, y'],
    [z.record(z.string().regex(/^a/, 'small letters'), z.int()), { B: 1 }, 'B: write the name in small letters'],
    [z.url(), 'x', ': give a URL'],
  ])('of %# is one sentence', (schema, value, line) => {
    expect(said(schema, value)).toEqual([line]);
  });

  it('leaves a schema its own words', () => {
    expect(said(z.string({ error: 'a path' }), 3)).toEqual([': a path']);
  });

  it('repeats no long value', () => {
    expect(shown('x'.repeat(1000))).toBe(`"${'x'.repeat(40)}…"`);
  });
});

describe('the name that was meant', () => {
  it('is the nearest, within a third of its letters', () => {
    expect(nearest('cdua', ['cpu', 'cuda', 'auto'])).toBe('cuda');
    expect(nearest('Steps', ['steps', 'batch'])).toBe('steps');
    expect(nearest('colour', ['clip', 'count', 'kl'])).toBeUndefined();
    expect(nearest('steps', ['steps'])).toBeUndefined();
  });
});
