/** Seeded randomness: every use draws from its own stream, derived from (seed, purpose, index). */

/**
 * 128 bits of `text` as four unsigned 32-bit words: MurmurHash3's mixing over UTF-16 code units.
 * Not cryptographic; neighbouring texts give unrelated words.
 */
function hashWords(text: string): [number, number, number, number] {
  let a = 0x239b961b;
  let b = 0xab0e9789;
  let c = 0x38b34ae5;
  let d = 0xa1e38b93;
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position);
    a = b ^ Math.imul(a ^ unit, 0x9e3779b1);
    b = c ^ Math.imul(b ^ unit, 0x85ebca77);
    c = d ^ Math.imul(c ^ unit, 0xc2b2ae3d);
    d = a ^ Math.imul(d ^ unit, 0x27d4eb2f);
  }
  a = finalise(a ^ text.length ^ (c >>> 18));
  b = finalise(b ^ a ^ (d >>> 22));
  c = finalise(c ^ b ^ (a >>> 17));
  d = finalise(d ^ c ^ (b >>> 19));
  return [a, b, c, d];
}

/** MurmurHash3's 32-bit finaliser: every input bit reaches every output bit. */
function finalise(word: number): number {
  let mixed = word;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/**
 * A stream of numbers in [0, 1) with 53 random bits each: the generator sfc32 (Doty-Humphrey, PractRand), seeded by a hash of
 * the seed's text. The same seed gives the same stream on every machine.
 */
export function seededRandom(seed: number | string): () => number {
  let [a, b, c, counter] = hashWords(String(seed));
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let round = 0; round < 12; round++) next();
  return () => ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
}

/** The items in a drawn order, each order as likely. Fisher and Yates. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
}

/**
 * The seed of one use's own stream: a 53-bit whole number that follows from the run's seed, what the stream is for, and which
 * one of its kind it is. A resumed run and an uninterrupted one therefore draw the same numbers.
 */
export function deriveSeed(seed: number | string, purpose: string, index: number): number {
  const [high, low] = hashWords(JSON.stringify([String(seed), purpose, index]));
  return (high >>> 11) * 0x100000000 + low;
}
