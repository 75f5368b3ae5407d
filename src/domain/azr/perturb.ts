/** Random inputs of the same types as a task's own, to see whether its answer could be guessed without reading the input. */
import { seededRandom } from '../../metrics/random.js';
import type { Arguments } from './literal.js';
import type { DistinctOutputs } from './settings.js';
import { pythonSource } from './value-text.js';
import type { PythonValue } from './value.js';

/**
 * `count` calls like the given one, each the text between the brackets of `f(…)`; they follow from `seed` alone.
 * Numbers, strings, lists, sets and the values of dicts are drawn anew; a tuple keeps its length, a dict its keys; None,
 * Ellipsis, bytes and complex numbers stay as they are.
 */
export function perturbedInputs(input: Arguments, count: number, seed: string, ranges: DistinctOutputs): string[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => {
    const positional = input.positional.map((value) => pythonSource(perturb(value, ranges.integers)));
    const keywords = input.keywords.map(([name, value]) => `${name}=${pythonSource(perturb(value, ranges.integers))}`);
    return [...positional, ...keywords].join(', ');
  });

  function perturb(value: PythonValue, integers: readonly [number, number]): PythonValue {
    switch (value.type) {
      case 'bool':
        return { type: 'bool', value: random() < 0.5 };
      case 'int':
        return { type: 'int', value: BigInt(between(integers)) };
      case 'float':
        return { type: 'float', value: between(integers) + between([0, 9]) / 10 };
      case 'str':
        return { type: 'str', value: Array.from({ length: lengthLike(value.value) }, letter).join('') };
      case 'list':
      case 'set':
        return {
          type: value.type,
          items: Array.from({ length: lengthLike(value.items) }, () => itemLike(value.items)),
        };
      case 'tuple':
        return { type: 'tuple', items: value.items.map((item) => perturb(item, ranges.items)) };
      case 'dict':
        return { type: 'dict', entries: value.entries.map(([key, item]) => [key, perturb(item, ranges.integers)]) };
      default:
        return value;
    }
  }

  /** An item like one of these; an integer where there is none to go by. */
  function itemLike(items: readonly PythonValue[]): PythonValue {
    return perturb(items[between([0, items.length - 1])] ?? { type: 'int', value: 0n }, ranges.items);
  }

  function lengthLike(value: { readonly length: number }): number {
    return Math.max(ranges.minimumLength, value.length + between([-1, 1]));
  }

  function letter(): string {
    return ranges.letters[between([0, ranges.letters.length - 1])] ?? '';
  }

  function between([low, high]: readonly [number, number]): number {
    return low + Math.floor(random() * (high - low + 1));
  }
}
