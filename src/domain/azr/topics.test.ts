import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLAIN_FACTS } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { UserError } from '../../errors.js';
import type { SyntaxFacts } from '../../sandbox/sandbox.js';
import { readTopicRules, topicOf } from './topics.js';
import type { TopicRules } from './topics.js';

const nodes = (...names: string[]): Record<string, number> => Object.fromEntries(names.map((name) => [name, 1]));

const topicBy = (rules: TopicRules) => (facts: Partial<SyntaxFacts>, input: string) =>
  topicOf(rules, { ...PLAIN_FACTS, ...facts }, input);

/** What both versions tell alike. */
const SHARED: [string, Partial<SyntaxFacts>][] = [
  ['dict_count', { nodes: nodes('Dict', 'While', 'For') }],
  ['dict_count', { calledAttributes: { get: 1 }, nodes: nodes('For') }],
  ['while_loop', { nodes: nodes('While', 'For', 'If') }],
  ['for_loop', { nodes: nodes('For', 'ListComp'), calledNames: { sorted: 1 } }],
  ['sorting_order', { calledNames: { sorted: 2, sum: 1 } }],
  ['sorting_order', { calledAttributes: { sort: 1 } }],
  ['comprehension', { nodes: nodes('ListComp', 'If') }],
  ['conditional', { nodes: nodes('If', 'Slice'), reversedSlices: 1 }],
  ['reversal', { nodes: nodes('Slice', 'Subscript'), reversedSlices: 1 }],
  ['search_replace', { calledAttributes: { replace: 1 }, nodes: nodes('Slice') }],
  ['slicing', { nodes: nodes('Slice', 'Subscript', 'Mod') }],
  ['modular', { nodes: nodes('Mod'), calledNames: { len: 1 } }],
  ['aggregation', { calledNames: { len: 1 }, nodes: nodes('Subscript') }],
  ['indexing', { nodes: nodes('Subscript') }],
  ['arithmetic', { nodes: nodes('Add', 'Mult') }],
];

describe('the rules code-1', () => {
  const rules = readTopicRules('data/topics/code-1.json');
  const topic = topicBy(rules);

  it('name fourteen topics, arithmetic last', () => {
    expect(rules.rules).toHaveLength(13);
    expect(rules.otherwise).toBe('arithmetic');
  });

  it.each(SHARED)('%s is told by its facts', (expected, facts) => {
    expect(topic(facts, '7')).toBe(expected);
  });

  it('tell string_concat where nothing else holds and an argument is a string', () => {
    expect(topic({}, "1, 'AB'")).toBe('string_concat');
    expect(topic({}, "k='AB'")).toBe('string_concat');
    expect(topic({}, '7')).toBe('arithmetic');
  });
});

describe('the rules code-2', () => {
  const topic = topicBy(TOPIC_RULES);

  it('are the default', () => {
    expect(TOPIC_RULES.version).toBe('code-2');
  });

  it.each(SHARED)('%s is told by its facts', (expected, facts) => {
    expect(topic(facts, '7')).toBe(expected);
  });

  it('tell an operator by what it is used on', () => {
    const add = { nodes: nodes('Add') };
    expect(topic(add, '7')).toBe('arithmetic');
    expect(topic(add, '[1, 2]')).toBe('list_building');
    expect(topic(add, "1, 'AB'")).toBe('string_concat');
    expect(topic({ nodes: nodes('Mod') }, "'%d'")).toBe('string_concat');
    expect(topic({ nodes: nodes('Add', 'List') }, '7')).toBe('list_building');
    expect(topic({ nodes: nodes('Sub') }, '[1, 2], 3')).toBe('arithmetic');
  });

  it('call what does none of these other', () => {
    expect(topic({}, '7')).toBe('other');
    expect(topic({}, "'AB'")).toBe('other');
  });
});

describe('a file of rules', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'propel-topics-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (text: string, name = 'mine.json'): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const rules = { version: 'mine', rules: [{ topic: 'loops', nodes: ['While', 'For'] }], otherwise: 'rest' };

  it('may name one topic by several rules, each with clauses that must hold beside it', () => {
    const further = [
      { topic: 'pairs', nodes: ['Tuple'], with: { inputs: ['tuple'], calls: ['zip'] } },
      { topic: 'pairs', methods: ['items'] },
    ];
    const mine = readTopicRules(write(JSON.stringify({ ...rules, rules: further })));
    const topic = topicBy(mine);
    expect(topic({ nodes: nodes('Tuple') }, '(1, 2)')).toBe('pairs');
    expect(topic({ nodes: nodes('Tuple'), calledNames: { zip: 1 } }, '1')).toBe('pairs');
    expect(topic({ nodes: nodes('Tuple') }, '1')).toBe('rest');
    expect(topic({ calledAttributes: { items: 1 } }, '1')).toBe('pairs');
  });

  it('of a user counts instead: the first rule that holds, else the last topic', () => {
    const mine = readTopicRules(write(JSON.stringify(rules)));
    expect(topicOf(mine, { ...PLAIN_FACTS, nodes: nodes('For') }, '1')).toBe('loops');
    expect(topicOf(mine, { ...PLAIN_FACTS, nodes: nodes('If') }, '1')).toBe('rest');
  });

  it.each([
    ['{"version": ', 'not JSON: '],
    [JSON.stringify({ ...rules, version: 'other' }), 'version: is other, the file is named mine'],
    [
      JSON.stringify({ ...rules, otherwise: 'loops' }),
      'the document: the topic where no rule holds is that of a rule too',
    ],
    [JSON.stringify({ ...rules, rules: [{ topic: 'x', with: { nodes: ['For'] } }] }), 'rules.0: a rule needs a clause'],
    [
      JSON.stringify({ ...rules, rules: [{ topic: 'x', nodes: ['For'], with: {} }] }),
      'rules.0.with: with needs a clause',
    ],
    [JSON.stringify({ ...rules, otherwise: 'unparsable' }), 'otherwise: unparsable is the topic of what has no'],
    [JSON.stringify({ ...rules, rules: [{ topic: 'empty' }] }), 'rules.0: a rule needs a clause'],
    [
      JSON.stringify({ ...rules, rules: [{ topic: 'x', node: ['For'] }] }),
      'rules.0: unknown key node; did you mean nodes?',
    ],
    ['[]', 'the document: give a map, not a list'],
  ])('that is none is refused in one line: %s', (text, message) => {
    const path = write(text);
    expect(() => readTopicRules(path)).toThrow(UserError);
    expect(() => readTopicRules(path)).toThrow(`${path}: ${message}`);
    expect(() => readTopicRules(path)).toThrow(/^[^\n]*; give a file of topic rules such as [^\n]*$/);
  });

  it('that is not there is refused', () => {
    expect(() => readTopicRules(join(folder, 'none.json'))).toThrow('none.json: does not exist');
  });
});
