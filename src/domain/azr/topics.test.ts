import { describe, expect, it } from 'vitest';
import { PLAIN_FACTS } from '../../../tests/fake-sandbox.js';
import { TOPICS, topicOf } from './topics.js';

const nodes = (...names: string[]): Record<string, number> => Object.fromEntries(names.map((name) => [name, 1]));

describe('topics', () => {
  it('are fourteen, arithmetic last', () => {
    expect(TOPICS).toHaveLength(14);
    expect(TOPICS.at(-1)).toBe('arithmetic');
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
    expect(topicOf({ ...PLAIN_FACTS, ...facts }, "[1, 'A']")).toBe(topic);
  });

  it('is string_concat where nothing else is told and an argument is a string', () => {
    expect(topicOf(PLAIN_FACTS, "1, 'AB'")).toBe('string_concat');
    expect(topicOf(PLAIN_FACTS, "k='AB'")).toBe('string_concat');
  });
});
