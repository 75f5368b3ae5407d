import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader, StreamSplitter } from './frames.js';

const bytes = (...parts: (Buffer | string | number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));

describe('frames', () => {
  it('are a length of 4 bytes, a header in JSON, a newline and a body', () => {
    expect(encodeFrame('run', { id: 7 }, Buffer.from('xy'))).toEqual(bytes([0, 0, 0, 24], '{"kind":"run","id":7}\nxy'));
  });

  it('come out whole, whatever the pieces they arrive in', () => {
    const stream = bytes(encodeFrame('start', { id: 1 }), encodeFrame('done', { id: 1 }, Buffer.from('a\nb')));
    for (const size of [1, 3, 7, stream.length]) {
      const reader = new FrameReader(1000);
      const frames = [];
      for (let at = 0; at < stream.length; at += size) frames.push(...reader.push(stream.subarray(at, at + size)));
      expect(frames.map(({ kind, body }) => [kind, body.toString()])).toEqual([
        ['start', ''],
        ['done', 'a\nb'],
      ]);
    }
  });

  it('take time that grows with their length, not with its square', () => {
    const reader = new FrameReader(1 << 28);
    const frame = encodeFrame('done', {}, Buffer.alloc(32 << 20));
    const started = performance.now();
    let found = 0;
    for (let at = 0; at < frame.length; at += 4096) found += reader.push(frame.subarray(at, at + 4096)).length;
    expect(found).toBe(1);
    expect(performance.now() - started).toBeLessThan(3000);
  });

  it.each([
    ['too long', bytes([0, 1, 0, 0]), 'a frame of 65536 bytes'],
    ['without a header', bytes([0, 0, 0, 2], 'xy'), 'without a header'],
    ['whose header is no JSON', bytes([0, 0, 0, 3], '{a\n'), 'JSON'],
    ['whose header has no kind', bytes([0, 0, 0, 3], '{}\n'), 'without a kind'],
  ])('%s are refused', (_name, stream, why) => {
    expect(() => new FrameReader(1000).push(stream)).toThrow(why);
  });
});

describe('StreamSplitter', () => {
  it("takes Docker's stream of two apart", () => {
    const stream = bytes([1, 0, 0, 0, 0, 0, 0, 2], 'ab', [2, 0, 0, 0, 0, 0, 0, 1], 'c', [1, 0, 0, 0, 0, 0, 0, 0]);
    for (const size of [1, 5, stream.length]) {
      const splitter = new StreamSplitter();
      const pieces = [];
      for (let at = 0; at < stream.length; at += size) pieces.push(...splitter.push(stream.subarray(at, at + size)));
      expect(pieces.map(({ stream: number, data }) => `${number}${data.toString()}`)).toEqual(['1ab', '2c', '1']);
    }
  });
});
