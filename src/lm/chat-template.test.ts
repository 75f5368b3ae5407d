/** Chat templates against transformers: a fixture made by `scripts/fixtures/chat_templates.py`. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../errors.js';
import { refusal } from '../../tests/refusal.js';
import { ChatTemplate } from './chat-template.js';

type Row = readonly [name: string, template: string, filled: readonly (string | null)[]];
const PEER = JSON.parse(readFileSync(new URL('fixtures/chat-templates.json', import.meta.url), 'utf8')) as {
  readonly questions: readonly string[];
  readonly tokens: Readonly<Record<string, string>>;
  readonly templates: readonly Row[];
};

/** Templates that transformers fills in and this does not, with what is said of them. */
const REFUSED: Readonly<Record<string, string>> = {
  'odd float': 'Parser Error',
  'odd tojson number': 'Parser Error',
  'odd string number': 'Parser Error',
  'odd float print': 'Parser Error',
  'odd tests more': 'Parser Error',
  'odd lower test': 'Parser Error',
  'odd recursive': 'Parser Error',
  'odd whitespace plus': 'Unexpected token',
  'odd raw': 'Unknown statement type: raw',
  'odd with': 'Unknown statement type: with',
  'odd loop cycle': 'the function cycle',
  'odd numbers': 'the filter round',
  'odd split': 'the attribute rsplit of a text',
  'odd format': 'the filter format',
  'odd dictsort': 'the filter dictsort',
  'odd unique': 'the filter sum',
  'odd groupby': 'the filter groupby',
  'odd batch': 'the filter batch',
  'odd wordcount': 'the filter center',
  'odd urlencode': 'the filter striptags',
  'odd compare': 'a chain of comparisons',
  'odd compare quiet': 'a chain of comparisons',
  'odd chain': 'a chain of comparisons',
  'odd concat': '* of a text and an int',
  'odd attr': 'the filter attr',
  'odd cycler': 'the function cycler',
  'odd joiner': 'the function joiner',
  'odd lipsum': 'the function lipsum',
  'odd splitlines': 'the attribute splitlines of a text',
  'odd partition': 'the attribute partition of a text',
  'odd big': 'a whole number of such a size',
  'odd forceescape': 'the filter forceescape',
};

function filled(template: string, content: string): string | null {
  try {
    return new ChatTemplate(template, PEER.tokens).render([{ role: 'user', content }]);
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}

const isRefused = ([name]: Row): boolean => Object.hasOwn(REFUSED, name);

describe('a chat template', () => {
  it.each(PEER.templates.filter((row) => !isRefused(row)))(
    '%s is filled in as transformers does',
    (_, template, texts) => {
      expect(PEER.questions.map((question) => filled(template, question))).toEqual(texts);
    },
  );

  it.each(PEER.templates.filter(isRefused))('%s is refused, what it uses named', (name, template, texts) => {
    expect(texts).not.toContain(null);
    const fill = (): string => new ChatTemplate(template, PEER.tokens).render([{ role: 'user', content: 'x' }]);
    expect(refusal(fill)).toMatch(/^UserError: the model's chat template .*; set chat: never to do without$/);
    expect(refusal(fill)).toContain(REFUSED[name]);
  });

  it('writes the same date every day', () => {
    const dated = "{{ strftime_now('%d %B %Y, %a %d.%m.%y') }} {{ date_string }}";
    expect(filled(dated, '')).toBe('26 July 2024, Fri 26.07.24 26 Jul 2024');
    expect(filled("{{ strftime_now('%H') }}", '')).toBeNull();
  });

  it('may not go on for ever', () => {
    const nested = '{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}';
    expect(refusal(() => new ChatTemplate(nested, {}).render([]))).toContain('uses a template that takes so long');
    expect(refusal(() => new ChatTemplate('{{ range(10000000) }}', {}).render([]))).toContain(
      'a range of more than 100000',
    );
    const self = '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}';
    expect(refusal(() => new ChatTemplate(self, {}).render([]))).toContain('UserError: ');
  });
});
