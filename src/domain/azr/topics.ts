/** What a program is about: fourteen topics, told by its syntax tree. */
import type { SyntaxFacts } from '../../sandbox/sandbox.js';
import { tryParseArguments } from './literal.js';

/** A program has the topic of the first rule of which any one clause holds. */
interface TopicRule {
  readonly topic: string;
  /** Classes of Python's ast. */
  readonly nodes?: readonly string[];
  /** Functions called by name, and methods called. */
  readonly calls?: readonly string[];
  readonly methods?: readonly string[];
  /** A slice backwards, `x[::-1]`. */
  readonly reversedSlice?: true;
  /** An argument is a string. */
  readonly stringInput?: true;
}

const RULES: readonly TopicRule[] = [
  { topic: 'dict_count', nodes: ['Dict'], methods: ['get'] },
  { topic: 'while_loop', nodes: ['While'] },
  { topic: 'for_loop', nodes: ['For'] },
  { topic: 'sorting_order', calls: ['sorted'], methods: ['sort'] },
  { topic: 'comprehension', nodes: ['ListComp', 'GeneratorExp', 'SetComp', 'DictComp'] },
  { topic: 'conditional', nodes: ['If'] },
  { topic: 'reversal', calls: ['reversed'], methods: ['reverse'], reversedSlice: true },
  { topic: 'search_replace', methods: ['count', 'find', 'index', 'replace', 'upper', 'join'] },
  { topic: 'slicing', nodes: ['Slice'] },
  { topic: 'modular', nodes: ['Mod'] },
  { topic: 'aggregation', calls: ['sum', 'max', 'min', 'len'] },
  { topic: 'indexing', nodes: ['Subscript'] },
  { topic: 'string_concat', stringInput: true },
];
const OTHERWISE = 'arithmetic';

/** The topics in the order in which they are tried. */
export const TOPICS: readonly string[] = [...RULES.map(({ topic }) => topic), OTHERWISE];

/** @param input the text between the brackets of `f(…)` */
export function topicOf(facts: SyntaxFacts, input: string): string {
  const rule = RULES.find(
    ({ nodes = [], calls = [], methods = [], reversedSlice, stringInput }) =>
      nodes.some((node) => counted(facts.nodes, node)) ||
      calls.some((name) => counted(facts.calledNames, name)) ||
      methods.some((name) => counted(facts.calledAttributes, name)) ||
      (reversedSlice === true && facts.reversedSlices > 0) ||
      (stringInput === true && hasStringArgument(input)),
  );
  return rule?.topic ?? OTHERWISE;
}

function counted(counts: Readonly<Record<string, number>>, name: string): boolean {
  return Object.hasOwn(counts, name) && (counts[name] ?? 0) > 0;
}

function hasStringArgument(input: string): boolean {
  const read = tryParseArguments(input);
  if (read === null) return false;
  return [...read.positional, ...read.keywords.map(([, value]) => value)].some((value) => value.type === 'str');
}
