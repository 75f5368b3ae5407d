/** Rollouts by the graph that has its own Loop: one run, whole completions. */
import { largest } from '../metrics/extremes.js';
import { floatData, floats, integers, scalar } from '../onnx/session.js';
import type { Feeds, Fetches } from '../onnx/session.js';
import { padRows } from './padding.js';
import type { Completion } from './request-checks.js';
import type { Sampling } from './sampling.js';
import { BEGUN, ENDED, stateAfter } from './token-ends.js';
import type { TokenEnds } from './token-ends.js';

/** Completions of all rows, a prompt's samples adjacent. `run` is the rollout graph's. */
export async function loopRollout(run: (feeds: Feeds) => Promise<Fetches>, sampling: Sampling): Promise<Completion[]> {
  const { prompts, samples, maxNewTokens, ends } = sampling;
  const promptTime = largest(prompts.map((p) => p.length));
  const lengths = BigInt64Array.from(prompts, (p) => BigInt(p.length));
  const out = await run({
    prompts: integers(padRows(prompts, promptTime), [prompts.length, promptTime]),
    promptLengths: integers(lengths, [prompts.length]),
    uniforms: floats(sampling.uniforms, [maxNewTokens, samples]),
    ...endFeeds(ends),
    temperature: scalar(sampling.temperature),
    ...sampling.factors,
  });
  const tokens = out['tokens']!.data as BigInt64Array;
  const logProbs = floatData(out['logProbs']);
  const steps = tokens.length / samples;
  return Array.from({ length: samples }, (_, sample) => {
    const written: number[] = [];
    let state = BEGUN;
    for (let step = 0; step < steps && state !== ENDED; step++) {
      const token = Number(tokens[step * samples + sample]!);
      written.push(token);
      state = stateAfter(ends, state, token);
    }
    return {
      tokens: written,
      logProbs: Float32Array.from(written, (_token, step) => logProbs[step * samples + sample]!),
      stopped: state === ENDED,
    };
  });
}

/** An automaton as the graph's inputs. */
export function endFeeds({ classOf, next }: TokenEnds): Feeds {
  return {
    classOf: integers(BigInt64Array.from(classOf, BigInt), [classOf.length]),
    nextState: integers(BigInt64Array.from(next, BigInt), [next.length]),
  };
}
