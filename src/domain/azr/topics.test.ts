import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLAIN_FACTS } from '../../../tests/fake-sandbox.js';
import { TOPIC_RULES } from '../../../tests/topic-rules.js';
import { UserError } from '../../errors.js';
import { readTopicRules, topicOf } from './topics.js';

const nodes = (...names: string[]): Record<string, number> => Object.fromEntries(names.map((name) => [name, 1]));

describe('the rules code-1', () => {
  it('name fourteen topics, arithmetic last', () => {
    expect(TOPIC_RULES.version).toBe('code-1');
    expect(TOPIC_RULES.rules).toHaveLength(13);
    expect(TOPIC_RULES.otherwise).toBe('arithmetic');
  });

  it.each([
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
  ])('%s is told by its facts', (topic, facts) => {
    expect(topicOf(TOPIC_RULES, { ...PLAIN_FACTS, ...facts }, "[1, 'A']")).toBe(topic);
  });

  it('tell string_concat where nothing else holds and an argument is a string', () => {
    expect(topicOf(TOPIC_RULES, PLAIN_FACTS, "1, 'AB'")).toBe('string_concat');
    expect(topicOf(TOPIC_RULES, PLAIN_FACTS, "k='AB'")).toBe('string_concat');
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

  it('of a user counts instead: the first rule that holds, else the last topic', () => {
    const mine = readTopicRules(write(JSON.stringify(rules)));
    expect(topicOf(mine, { ...PLAIN_FACTS, nodes: nodes('For') }, '1')).toBe('loops');
    expect(topicOf(mine, { ...PLAIN_FACTS, nodes: nodes('If') }, '1')).toBe('rest');
  });

  it.each([
    ['{"version": ', 'not JSON: '],
    [JSON.stringify({ ...rules, version: 'other' }), 'version: is other, the file is named mine'],
    [JSON.stringify({ ...rules, otherwise: 'loops' }), 'the document: a topic is named twice'],
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
