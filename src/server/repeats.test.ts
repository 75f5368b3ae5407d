import { describe, expect, it } from 'vitest';
import { Repeats } from './repeats.js';

const told = (repeats: Repeats, session: string, request: string, ...tasks: (string | null)[]) =>
  repeats.admit({ session, request }, tasks).repeats;

describe('repeats', () => {
  it('are looked for among the latest distinct tasks, those seen again among them', () => {
    const repeats = new Repeats({ window: 3, sessions: 2 });
    expect(told(repeats, 'a', '1', 'x', 'y', 'z')).toEqual([false, false, false]);
    expect(told(repeats, 'a', '2', 'x', null, 'v')).toEqual([true, false, false]);
    // y was the oldest.
    expect(told(repeats, 'a', '3', 'z', 'x', 'v', 'y')).toEqual([true, true, true, false]);
  });

  it('of a request larger than the window are told within it', () => {
    const repeats = new Repeats({ window: 2, sessions: 2 });
    const tasks = Array.from({ length: 10 }, (_, i) => String(i));
    expect(told(repeats, 'a', '1', ...tasks, ...tasks)).toEqual([...tasks.map(() => false), ...tasks.map(() => true)]);
  });

  it('are forgotten with the session that was asked for longest ago', () => {
    const repeats = new Repeats({ window: 3, sessions: 2 });
    for (const session of ['a', 'b', 'a', 'c']) told(repeats, session, session, 'x');
    expect(repeats.sessions).toBe(2);
    expect(told(repeats, 'a', 'again', 'x')).toEqual([true]);
    expect(told(repeats, 'b', 'again', 'x')).toEqual([false]);
  });

  it('are withdrawn with the request that brought them first, not with another', () => {
    const repeats = new Repeats({ window: 3, sessions: 2 });
    told(repeats, 'a', '1', 'x');
    const { withdraw } = repeats.admit({ session: 'a', request: '2' }, ['x', 'y']);
    withdraw();
    expect(told(repeats, 'a', '3', 'x', 'y')).toEqual([true, false]);
  });
});
