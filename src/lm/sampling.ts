/** What a rollout draws from, whichever way it is run: rows of prompts, and for every row and step the uniform number that picks its token. */
import { largest } from '../metrics/extremes.js';
import { floats } from '../onnx/session.js';
import type { Feeds } from '../onnx/session.js';
import { seededRandom } from '../metrics/random.js';
import type { Adapter } from './adapter.js';
import { withStopTokens } from './token-ends.js';
import type { TokenEnds } from './token-ends.js';
import type { Completion, GroupedRolloutRequest, RolloutGroup, RolloutRequest } from './request-checks.js';

export interface Sampling {
  /** A group's prompts adjacent, as many of each group. */
  readonly prompts: readonly (readonly number[])[];
  readonly groups: number;
  readonly perPrompt: number;
  /** prompts · perPrompt; a prompt's samples are adjacent. */
  readonly samples: number;
  readonly maxNewTokens: number;
  readonly temperature: number;
  readonly ends: TokenEnds;
  /** [maxNewTokens, samples], in [0, 1). */
  readonly uniforms: Float32Array;
  /** The factors of the adapters, by input name. */
  readonly factors: Feeds;
}

/** @param vocabulary of the model */
export function singleSampling(request: RolloutRequest, vocabulary: number): Sampling {
  return sampling([request], request, vocabulary, adapterFeeds(request.adapter));
}

/** Of several adapters of one layout, whose factors are stacked. */
export function groupedSampling({ groups, ...request }: GroupedRolloutRequest, vocabulary: number): Sampling {
  return sampling(groups, request, vocabulary, stackedFeeds(groups.map(({ adapter }) => adapter)));
}

function sampling(
  groups: readonly Pick<RolloutGroup, 'prompts' | 'seed'>[],
  {
    perPrompt,
    maxNewTokens,
    temperature,
    stops,
    ends: texts,
  }: Pick<Sampling, 'perPrompt' | 'maxNewTokens' | 'temperature'> & Pick<GroupedRolloutRequest, 'stops' | 'ends'>,
  vocabulary: number,
  factors: Feeds,
): Sampling {
  // Every group has as many rows as the largest: what it lacks are its own once more, drawn alike.
  const slots = largestGroup(groups);
  const prompts = groups.flatMap((group) =>
    Array.from({ length: slots }, (_, slot) => group.prompts[slot % group.prompts.length]!),
  );
  const [share, samples] = [slots * perPrompt, prompts.length * perPrompt];
  const uniforms = new Float32Array(maxNewTokens * samples);
  groups.forEach((group, index) => {
    const own = group.prompts.length * perPrompt;
    const drawn = Float32Array.from({ length: maxNewTokens * own }, seededRandom(group.seed));
    for (let step = 0; step < maxNewTokens; step++) {
      for (let i = 0; i < share; i++) {
        uniforms[step * samples + index * share + i] = drawn[step * own + (i % own)]!;
      }
    }
  });
  const ends = withStopTokens(texts ?? null, vocabulary, stops);
  return { prompts, groups: groups.length, perPrompt, samples, maxNewTokens, temperature, ends, uniforms, factors };
}

/** Completions of all rows → those of each group, without the rows that fill it up. */
export function completionsByGroup(
  { groups, perPrompt }: Pick<GroupedRolloutRequest, 'groups' | 'perPrompt'>,
  completions: readonly Completion[],
): Completion[][] {
  const share = largestGroup(groups) * perPrompt;
  return groups.map(({ prompts }, index) =>
    completions.slice(index * share, index * share + prompts.length * perPrompt),
  );
}

const largestGroup = (groups: readonly Pick<RolloutGroup, 'prompts'>[]): number =>
  largest(groups.map(({ prompts }) => prompts.length));

/** An adapter's factors as a graph's inputs; none without one. */
export function adapterFeeds(adapter: Adapter | null): Feeds {
  return Object.fromEntries([...(adapter?.factors ?? [])].map(([name, t]) => [name, floats(t.data, t.shape)]));
}

/** The factors of adapters of one layout, [adapters, …]. */
function stackedFeeds(adapters: readonly Adapter[]): Feeds {
  const stacked = [...adapters[0]!.factors].map(([name, { shape, data }]) => {
    const all = new Float32Array(adapters.length * data.length);
    adapters.forEach(({ factors }, i) => all.set(factors.get(name)!.data, i * data.length));
    return [name, floats(all, [adapters.length, ...shape])] as const;
  });
  return Object.fromEntries(stacked);
}
