/** The search of edits against a probe whose logit can be worked out by hand: 10 × the share of `a` among a text's tokens − 2, scaled by 2. */
import { describe, expect, it } from 'vitest';
import { standInReference } from '../../tests/planted-tasks.js';
import { PROBES, plantedLogit, probeOf } from '../../tests/probe-world.js';
import type { CodeTask } from '../domain/azr/index.js';
import { searchEdits } from './probe-edits.js';
import type { Workspace } from './workspace.js';

const task = (snippet: string): CodeTask => ({ type: 'code_o', snippet, input: '1', output: '1' });

/** Edits add one letter; a program with `w` gives another answer, one with `x` is no task. */
function world(added: readonly string[]): Workspace {
  return {
    domain: {
      render: ({ snippet }: { snippet: string }) => snippet,
      idleEdits: (of: { snippet: string }) =>
        added.map((letter) => ({ kind: letter, task: { ...of, snippet: of.snippet + letter, output: null } })),
    },
    reference: async () => standInReference,
    check: async (tasks: { snippet: string }[]) =>
      tasks.map((checked) =>
        checked.snippet.includes('x')
          ? { task: null }
          : { task: { ...checked, output: checked.snippet.includes('w') ? '2' : '1' } },
      ),
    checkpoint() {},
  } as unknown as Workspace;
}

describe('the search of edits', () => {
  const [planted] = PROBES;
  const probe = probeOf(planted!);
  const logit = (text: string): number => plantedLogit(planted!, text) / 2;

  it('takes the edit that raises the logit most, and edits what that made again', async () => {
    const moves = await searchEdits(world(['a', 'b']), probe, [task('bb')], 1);
    expect(moves.rise.value).toBeCloseTo(logit('bbaa') - logit('bb'), 5);
    // None of three tokens is `a` at first, then two of five: −2, then 10 × 2/5 − 2.
    expect(moves.lifted).toMatchObject({ count: 1, of: 1 });
    expect(moves.kinds.map(({ kind, tried, kept }) => [kind, tried, kept])).toEqual([
      ['a', 1, 1],
      ['b', 1, 1],
    ]);
    expect(moves.kinds[0]!.mean).toBeCloseTo(logit('bba') - logit('bb'), 5);
  });

  it('no edit counts whose answer is another, or that is no task', async () => {
    const moves = await searchEdits(world(['w', 'x']), probe, [task('bb'), task('ab')], 1);
    expect(moves.rise).toEqual({ value: 0, interval: [0, 0] });
    expect(moves.kinds).toMatchObject([
      { kind: 'w', tried: 2, kept: 0, mean: null },
      { kind: 'x', tried: 2, kept: 0 },
    ]);
  });

  it('one that lowers the logit is told, and not taken', async () => {
    const moves = await searchEdits(world(['b']), probe, [task('ab')], 1);
    expect(moves.rise.value).toBe(0);
    expect(moves.kinds[0]!.most).toBeCloseTo(logit('abb') - logit('ab'), 5);
  });
});
