/** Small tasks that show a generator the form; a prompt draws a few of them by its seed. */
import { seededRandom } from '../../metrics/random.js';
import type { ProgramAndInput } from './notation.js';

const EXAMPLES: readonly ProgramAndInput[] = [
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

/** `count` different examples, in an order that follows from `seed`. */
export function drawExamples(count: number, seed: number): ProgramAndInput[] {
  const random = seededRandom(`code examples ${seed}`);
  const left = [...EXAMPLES];
  const drawn: ProgramAndInput[] = [];
  while (drawn.length < count && left.length > 0) drawn.push(...left.splice(Math.floor(random() * left.length), 1));
  return drawn;
}
