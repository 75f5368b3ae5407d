/** A rollout in parts, each as large as fits: whole prompts, or some of a prompt's samples. A part draws what the whole would draw for its rows. */
import { largest } from '../metrics/extremes.js';
import type { RolloutSize } from './footprint.js';
import type { Completion } from './request-checks.js';
import type { Sampling } from './sampling.js';

/** The same prompts of every group, the same samples of each of them; from the first up to but without the second. */
export interface RolloutPart {
  readonly prompts: readonly [number, number];
  readonly samples: readonly [number, number];
}

/** What a rollout is cut by. */
export interface RolloutShape {
  /** Tokens of each prompt; a group's adjacent, as many of each group. */
  readonly promptLengths: readonly number[];
  readonly groups: number;
  readonly perPrompt: number;
  readonly maxNewTokens: number;
}

/**
 * Prompts in their order, as many a part as fit; the samples of one that does not fit in parts of like size. The least part is a sample of
 * one prompt of each group, whether that fits or not.
 */
export function rolloutParts(
  { promptLengths, groups, perPrompt, maxNewTokens }: RolloutShape,
  fits: (size: RolloutSize) => boolean,
): RolloutPart[] {
  const slots = promptLengths.length / groups;
  const longest = Array.from({ length: slots }, (_, slot) =>
    largest(Array.from({ length: groups }, (_group, group) => promptLengths[group * slots + slot]!)),
  );
  const partFits = (from: number, to: number, samples: number) =>
    fits({
      prompts: groups * (to - from),
      promptTime: largest(longest.slice(from, to)),
      samples: groups * (to - from) * samples,
      newTokens: maxNewTokens,
    });
  const parts: RolloutPart[] = [];
  for (let from = 0, to = 1; from < slots; from = to++) {
    while (to < slots && partFits(from, to + 1, perPrompt)) to++;
    const pieces = to === from + 1 ? fewestPieces(perPrompt, (samples) => partFits(from, to, samples)) : 1;
    const size = Math.ceil(perPrompt / pieces);
    for (let first = 0; first < perPrompt; first += size) {
      parts.push({ prompts: [from, to], samples: [first, Math.min(perPrompt, first + size)] });
    }
  }
  return parts;
}

/** Fewest parts of like size, of `count` together, that each fit; `count` parts of one when not even one fits. */
function fewestPieces(count: number, fits: (size: number) => boolean): number {
  let pieces = 1;
  while (pieces < count && !fits(Math.ceil(count / pieces))) pieces++;
  return pieces;
}

/** Rows of the whole rollout that a part has, in the part's order. */
function rowsOf({ prompts: [from, to], samples: [first, end] }: RolloutPart, sampling: Sampling): number[] {
  const { prompts, groups, perPrompt } = sampling;
  const slots = prompts.length / groups;
  const rows: number[] = [];
  for (let group = 0; group < groups; group++) {
    for (let slot = from; slot < to; slot++) {
      for (let sample = first; sample < end; sample++) rows.push((group * slots + slot) * perPrompt + sample);
    }
  }
  return rows;
}

/** A part's prompts, and of the uniforms those that the whole has for its rows. */
export function partOf(sampling: Sampling, part: RolloutPart): Sampling {
  const { prompts, groups, maxNewTokens, samples: all } = sampling;
  const rows = rowsOf(part, sampling);
  const uniforms = new Float32Array(maxNewTokens * rows.length);
  for (let step = 0; step < maxNewTokens; step++) {
    rows.forEach((row, i) => (uniforms[step * rows.length + i] = sampling.uniforms[step * all + row]!));
  }
  const slots = prompts.length / groups;
  const [from, to] = part.prompts;
  return {
    ...sampling,
    prompts: Array.from({ length: groups }, (_, group) =>
      prompts.slice(group * slots + from, group * slots + to),
    ).flat(),
    perPrompt: part.samples[1] - part.samples[0],
    samples: rows.length,
    uniforms,
  };
}

/** Completions of all rows, from the parts that `run` samples one after the other. */
export async function rolloutInParts(
  sampling: Sampling,
  fits: (size: RolloutSize) => boolean,
  run: (part: Sampling) => Promise<Completion[]>,
): Promise<Completion[]> {
  const parts = rolloutParts({ ...sampling, promptLengths: sampling.prompts.map(({ length }) => length) }, fits);
  if (parts.length === 1) return run(sampling);
  const completions: Completion[] = [];
  for (const part of parts) {
    const written = await run(partOf(sampling, part));
    rowsOf(part, sampling).forEach((row, i) => (completions[row] = written[i]!));
  }
  return completions;
}
