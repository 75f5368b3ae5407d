// Inputs of a reader: its hostile ones, then its seeds with a few changes each. An input follows from the reader, its index and the seed alone.

const encoder = new TextEncoder();
const bytesOf = (input) => {
  const made = typeof input === 'function' ? input() : input;
  return typeof made === 'string' ? encoder.encode(made) : made;
};

/** What readers of text and numbers stumble over. */
const ODD = [
  '\0',
  '\r',
  '\u2028',
  '\uFEFF',
  '\uFDD0',
  '\u0000\u0000',
  '\u00E9',
  'İ',
  '𝟙',
  '\uD83D',
  '"',
  "'",
  '`',
  '```',
  '~~~',
  '\\',
  '\\u',
  '\\x',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  '{}',
  '[]',
  'null',
  'true',
  'NaN',
  'Infinity',
  '-',
  '-0',
  '1e999',
  '1e-999',
  '0.1',
  '9007199254740993',
  '1'.repeat(400),
  '-1',
  '1.5',
  '4294967296',
  '2147483648',
  '__proto__',
  'constructor',
  'toString',
  '<s>',
  '</s>',
  '<|im_end|>',
  ':',
  ',',
  ', ,',
  '#',
  '# ',
  '- ',
  '> ',
  '\t',
  '\n',
  '\n\n',
  ' ',
  'def f(',
  'lambda:',
  '&a',
  '*a',
  '!!js',
  '<<: ',
  '%',
  '$',
  '..',
  '../',
  '/',
  'e',
  'E',
  '+',
  '_',
  'x'.repeat(5000),
  '('.repeat(300),
  '['.repeat(3000),
  '{"a":'.repeat(2000),
  '\n'.repeat(3000),
  '`'.repeat(3000),
];

/** @param {{ seeds: unknown[], hostile?: unknown[] }} parser @returns {Uint8Array} */
export function inputOf({ seeds, hostile = [] }, index, seed) {
  if (index < hostile.length) return bytesOf(hostile[index]);
  const random = randomOf(seed, index);
  const below = (n) => Math.floor(random() * n);
  let bytes = bytesOf(seeds[below(seeds.length)]);
  // One in fifty is left as it is: what is right must be read.
  const changes = random() < 0.02 ? 0 : 1 + below(4);
  for (let i = 0; i < changes; i++) bytes = changed(bytes, seeds, below);
  return bytes;
}

function changed(bytes, seeds, below) {
  const at = below(bytes.length + 1);
  const length = Math.min(bytes.length - at, 1 + below(2 ** below(9)));
  const head = bytes.subarray(0, at);
  const tail = bytes.subarray(at + length);
  switch (below(9)) {
    case 0: {
      const flipped = Uint8Array.from(bytes);
      if (flipped.length > 0) flipped[below(flipped.length)] ^= 1 << below(8);
      return flipped;
    }
    case 1:
      return joined(head, tail);
    case 2:
      return head;
    case 3:
      return joined(head, encoder.encode(ODD[below(ODD.length)]), bytes.subarray(at));
    case 4:
      return joined(head, encoder.encode(ODD[below(ODD.length)]), tail);
    case 5: {
      const piece = bytes.subarray(at, at + length);
      return joined(head, ...Array.from({ length: 1 + below(2 ** below(7)) }, () => piece), tail);
    }
    case 6: {
      const other = bytesOf(seeds[below(seeds.length)]);
      const from = below(other.length + 1);
      return joined(head, other.subarray(from), tail);
    }
    case 7:
      return numberChanged(bytes, below);
    default:
      return joined(
        head,
        Uint8Array.from({ length: 1 + below(8) }, () => below(256)),
        tail,
      );
  }
}

/** One of the numbers in a text made an odd one. */
function numberChanged(bytes, below) {
  const text = Buffer.from(bytes).toString('latin1');
  const numbers = [...text.matchAll(/-?\d+(?:\.\d+)?/g)];
  if (numbers.length === 0) return bytes;
  const { 0: found, index } = numbers[below(numbers.length)];
  const odd = ['-1', '0', '1.5', '1e300', '200000000', '9007199254740993', '9'.repeat(60), '""', 'null', '[]'];
  return Buffer.from(text.slice(0, index) + odd[below(odd.length)] + text.slice(index + found.length), 'latin1');
}

function joined(...pieces) {
  const whole = Buffer.concat(pieces);
  // Growth is bounded, so that a chance sequence of repeats is not what a reader is measured by.
  return whole.subarray(0, 2 ** 20);
}

/** Mulberry32 of the seed and the index. */
function randomOf(seed, index) {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
