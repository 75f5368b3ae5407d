import { describe, expect, it } from 'vitest';
import { parseFrame } from './results.js';

const frame = (text: string): Buffer => Buffer.from(text, 'utf8');

describe('parseFrame', () => {
  it('reads one status, length and text a call', () => {
    expect(parseFrame(frame("o00000003'a'e00000006Errorxm00000000"), 3, 100)).toEqual([
      { outcome: 'ok', repr: "'a'", detail: '' },
      { outcome: 'runtime_error', repr: null, detail: 'Errorx' },
      { outcome: 'memory', repr: null, detail: '' },
    ]);
  });

  it('counts bytes, not characters', () => {
    expect(parseFrame(frame('o00000004🙂'), 1, 100)).toEqual([{ outcome: 'ok', repr: '🙂', detail: '' }]);
  });

  it.each([
    ['nothing', '', 1],
    ['a call too few', 'o000000011', 2],
    ['bytes after the last call', 'o000000011x', 1],
    ['an unknown status', 'z000000011', 1],
    ['a length that is no number', 'o0000001x1', 1],
    ['a length beyond the end', 'o000000091', 1],
    ['a result above its limit', 'o00000005abcde', 1],
  ])('refuses %s', (_name, text, count) => {
    expect(parseFrame(frame(text), count, 4)).toBeNull();
  });
});
