/** Small tasks that show a generator the form; a prompt draws a few of them by its seed. */
import { seededRandom } from '../../metrics/random.js';
import type { ProgramAndInput, ProgramAndInputs } from './notation.js';

/** For code_o and code_i. */
export const CALL_EXAMPLES: readonly ProgramAndInput[] = [
  {
    snippet: `def f(words, width):
    lines = []
    line = ''
    for word in words:
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = (line + ' ' + word).strip()
    return lines + [line]`,
    input: `['the', 'quick', 'brown', 'fox', 'jumps'], 10`,
  },
  {
    snippet: `def f(numbers):
    best = current = numbers[0]
    for number in numbers[1:]:
        current = max(number, current + number)
        best = max(best, current)
    return best`,
    input: `[3, -5, 8, -2, 4, -9, 6]`,
  },
  {
    snippet: `def f(text):
    runs = []
    for character in text:
        if runs and runs[-1][0] == character:
            runs[-1][1] += 1
        else:
            runs.append([character, 1])
    return ''.join(c + str(n) for c, n in runs if n > 1)`,
    input: `'aabcccddeffff'`,
  },
  {
    snippet: `def f(stock, orders):
    refused = []
    for name, amount in orders:
        if stock.get(name, 0) >= amount:
            stock[name] -= amount
        else:
            refused.append(name)
    return {'left': sum(stock.values()), 'refused': sorted(refused)}`,
    input: `{'nut': 7, 'bolt': 3}, [('nut', 4), ('bolt', 2), ('nut', 4), ('gear', 1)]`,
  },
  {
    snippet: `def f(n, base):
    digits = []
    while n:
        n, digit = divmod(n, base)
        digits.append(digit)
    return digits == digits[::-1], digits`,
    input: `585, 2`,
  },
  {
    snippet: `def f(rows):
    turned = [list(column) for column in zip(*rows)]
    return [sum(row[::2]) - sum(row[1::2]) for row in turned]`,
    input: `[[1, 2, 3], [4, 5, 6], [7, 8, 9]]`,
  },
  {
    snippet: `def f(expression):
    stack = []
    for token in expression.split():
        if token.isdigit():
            stack.append(int(token))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left - right if token == '-' else left * right)
    return stack`,
    input: `'7 2 - 3 * 4 1 -'`,
  },
  {
    snippet: `def f(links, start):
    reached, waiting = {start}, [start]
    while waiting:
        for follower in links.get(waiting.pop(), ()):
            if follower not in reached:
                reached.add(follower)
                waiting.append(follower)
    return sorted(set(links) - reached)`,
    input: `{'a': ['b', 'c'], 'b': ['c'], 'd': ['a'], 'c': []}, 'b'`,
  },
];

/** For code_f: ten inputs each. */
export const FUNCTION_EXAMPLES: readonly ProgramAndInputs[] = [
  {
    snippet: `def f(text, shift):
    moved = []
    for position, character in enumerate(text):
        if character.isalpha() and position % 2 == 0:
            character = chr((ord(character.lower()) - 97 + shift) % 26 + 97)
        moved.append(character)
    return ''.join(moved)`,
    inputs: [
      `'abcdef', 1`,
      `'zebra', 2`,
      `'Hello', 0`,
      `'a-b-c', 3`,
      `'aaaa', 25`,
      `'Python 3', 4`,
      `'', 7`,
      `'xyz', 30`,
      `'QUIET', 5`,
      `'12ab', 6`,
    ],
    message: 'Some letters travel through the alphabet, others stay. Where a letter stands matters.',
  },
  {
    snippet: `def f(readings, limit):
    streak = longest = 0
    for reading in readings:
        streak = streak + 1 if reading > limit else 0
        longest = max(longest, streak)
    return longest, sum(reading > limit for reading in readings)`,
    inputs: [
      `[1, 5, 6, 2, 7], 4`,
      `[9, 9, 9], 8`,
      `[], 3`,
      `[3, 3, 3], 3`,
      `[10, 1, 10, 1, 10], 5`,
      `[4, 8, 8, 8, 1, 9, 9], 7`,
      `[-2, -1, 0, 1, 2], -2`,
      `[6, 7], 6`,
      `[2, 4, 6, 8, 10, 1, 3, 12], 3`,
      `[5, 5, 1, 5, 5, 5, 1, 5], 2`,
    ],
    message: 'Two numbers describe how often a list goes above a line, and for how long.',
  },
  {
    snippet: `def f(items):
    kept = {}
    for key, amount in items:
        if amount < 0:
            kept.pop(key, None)
        else:
            kept[key] = kept.get(key, 0) + amount
    return sorted(kept.items(), key=lambda pair: (-pair[1], pair[0]))`,
    inputs: [
      `[('a', 1), ('b', 2)]`,
      `[('a', 1), ('a', 4), ('b', 2)]`,
      `[('x', 3), ('x', -1)]`,
      `[('p', 2), ('q', 2), ('r', 2)]`,
      `[('a', 5), ('b', 1), ('a', -2), ('a', 1)]`,
      `[('m', 0)]`,
      `[('k', 7), ('j', 7), ('k', 1)]`,
      `[('z', -3), ('z', 3)]`,
      `[('a', 2), ('b', 3), ('b', -1), ('c', 4), ('a', 2)]`,
      `[('s', 1), ('t', 2), ('u', 3), ('t', -9)]`,
    ],
    message: 'A ledger of names and amounts is summed up; mind what a negative amount does.',
  },
  {
    snippet: `def f(number):
    steps = []
    while number > 1 and len(steps) < 6:
        for divisor in (2, 3, 5):
            if number % divisor == 0:
                number //= divisor
                steps.append(divisor)
                break
        else:
            number -= 1
            steps.append(0)
    return steps`,
    inputs: ['12', '7', '1', '30', '49', '64', '11', '100', '27', '85'],
    message: 'A number is taken down towards one; the list tells how.',
  },
];

/** `count` different ones of the examples, in an order that follows from `seed`. */
export function drawExamples<Example>(examples: readonly Example[], count: number, seed: number): Example[] {
  const random = seededRandom(`code examples ${seed}`);
  const left = [...examples];
  const drawn: Example[] = [];
  while (drawn.length < count && left.length > 0) {
    const [one] = left.splice(Math.floor(random() * left.length), 1);
    drawn.push(one!);
  }
  return drawn;
}

/** A prompt that ends with what to do now. */
export function withExamples(instructions: string, examples: readonly string[]): string {
  const shown = examples.map((example, index) => `Example ${index + 1}\n\n${example}`);
  const closing = shown.length === 0 ? 'Now write your task.' : 'Now write a task of your own, unlike the examples.';
  return `${[instructions, ...shown, closing].join('\n\n')}\n`;
}
