/** How a batch of token sequences is fed to a graph: as it is, right-padded, or after a common prefix, row by row. */
import { floats, integers } from '../onnx/session.js';
import type { Feeds } from '../onnx/session.js';

/** A padded batch of token sequences; every array is row-major [batch, time] and aligned with `labels`, the next tokens. */
export interface TokenBatch {
  readonly batch: number;
  readonly time: number;
  /**
   * At least one token that comes before every sequence, and is computed once for all of them. Tokens after a sequence's last one of any
   * weight are then not computed, and their log-probabilities 0. Without it each sequence is all of its text.
   */
  readonly prefix?: BigInt64Array | undefined;
  readonly ids: BigInt64Array;
  readonly labels: BigInt64Array;
  /** Weight of a token in the loss: 0 for padding and prompt. */
  readonly mask: Float32Array;
}

export interface BatchRows {
  /** The tokens, and where they lie. */
  readonly feeds: Feeds;
  /** Shape of what is given and returned of each scored token. */
  readonly shape: readonly number[];
  /** From [batch, time] to that shape. */
  readonly pack: <T extends Float32Array | BigInt64Array>(values: T) => T;
  /** And back to [batch, time], 0 at tokens that are not computed. */
  readonly unpack: (values: Float32Array) => Float32Array;
}

/** @param group query heads that share a key–value head */
export function batchRows(batch: TokenBatch, group: number): BatchRows {
  return batch.prefix ? prefixRows({ ...batch, prefix: batch.prefix }, group) : paddedRows(batch);
}

function paddedRows({ batch, time, ids }: TokenBatch): BatchRows {
  const shape = [batch, time];
  return { feeds: { ids: integers(ids, shape) }, shape, pack: (values) => values, unpack: (values) => values };
}

/** Rows up to each sequence's last token of any weight: the prefix, then one sequence after the other. */
function prefixRows(batch: TokenBatch & { readonly prefix: BigInt64Array }, group: number): BatchRows {
  const { time, prefix } = batch;
  const lengths = Array.from({ length: batch.batch }, (_, b) => weightedLength(batch, b));
  const written = lengths.reduce((a, b) => a + b, 0);
  const rows = prefix.length + written;
  const pack = <T extends Float32Array | BigInt64Array>(values: T): T => {
    const packed = values.slice(0, written) as T;
    let at = 0;
    lengths.forEach((length, b) => {
      packed.set(values.subarray(b * time, b * time + length) as never, at);
      at += length;
    });
    return packed;
  };
  const unpack = (values: Float32Array): Float32Array => {
    const padded = new Float32Array(batch.batch * time);
    let at = 0;
    lengths.forEach((length, b) => padded.set(values.subarray(at, (at += length)), b * time));
    return padded;
  };
  const ids = new BigInt64Array(rows);
  ids.set(prefix);
  ids.set(pack(batch.ids), prefix.length);
  const inSequence = lengths.flatMap((length) => Array.from({ length }, (_, t) => prefix.length + t));
  const positions = BigInt64Array.from([...prefix.keys(), ...inSequence], BigInt);
  const feeds = {
    ids: integers(ids, [rows]),
    positions: integers(positions, [rows]),
    ...placesFeeds('queries', prefix.length, lengths, time, group),
    ...placesFeeds('keys', prefix.length, lengths, time, 1),
    present: floats(presence(lengths, time, group), [batch.batch * group * time, 1]),
  };
  return { feeds, shape: [written], pack, unpack };
}

/** Tokens of a sequence up to its last one of any weight: what comes after it changes nothing. */
function weightedLength({ time, mask }: TokenBatch, sequence: number): number {
  let length = time;
  while (length > 1 && mask[sequence * time + length - 1] === 0) length--;
  return length;
}

/**
 * Indices of rows along an axis that has all of them n times, head by head: the prefix [n · prefix], the sequences [batch, n, time], their
 * padding any row of theirs, and the way back from both laid end to end [n · rows].
 */
export function placesOf(
  prefix: number,
  lengths: readonly number[],
  time: number,
  n: number,
): { prefix: number[]; sequences: number[]; joined: number[] } {
  const rows = lengths.reduce((a, b) => a + b, prefix);
  const places = { prefix: [] as number[], sequences: [] as number[], joined: Array<number>(n * rows) };
  for (let head = 0; head < n; head++) {
    for (let t = 0; t < prefix; t++) {
      places.joined[head * rows + t] = places.prefix.length;
      places.prefix.push(head * rows + t);
    }
  }
  let first = prefix;
  for (const length of lengths) {
    for (let head = 0; head < n; head++) {
      for (let t = 0; t < time; t++) {
        const row = head * rows + first + Math.min(t, length - 1);
        if (t < length) places.joined[row] = n * prefix + places.sequences.length;
        places.sequences.push(row);
      }
    }
    first += length;
  }
  return places;
}

function placesFeeds(name: 'queries' | 'keys', prefix: number, lengths: readonly number[], time: number, n: number) {
  const places = placesOf(prefix, lengths, time, n);
  const feed = (indices: readonly number[], shape = [indices.length]) =>
    integers(BigInt64Array.from(indices, BigInt), shape);
  return {
    [`${name}.prefix`]: feed(places.prefix),
    [`${name}.sequences`]: feed(places.sequences, name === 'keys' ? [lengths.length, time] : undefined),
    [`${name}.joined`]: feed(places.joined),
  };
}

/** [batch, n, time]: 1 at a token, 0 at padding. */
function presence(lengths: readonly number[], time: number, n: number): Float32Array {
  const present = new Float32Array(lengths.length * n * time);
  lengths.forEach((length, b) => {
    for (let head = 0; head < n; head++) {
      const at = (b * n + head) * time;
      present.fill(1, at, at + length);
    }
  });
  return present;
}
