/** Rollouts by the graph that has its own Loop: one run, whole completions. */
import { largest } from '../metrics/extremes.js';
import { floatData, floats, integers, scalar } from '../onnx/session.js';
import type { Feeds, Fetches } from '../onnx/session.js';
import { padRows } from './padding.js';
import type { Completion } from './request-checks.js';
import type { Sampling } from './sampling.js';

/** Stands for no stop: the graph's reductions need one to compare with. */
const NO_TOKEN = -1;

/** Completions of all rows, a prompt's samples adjacent. `run` is the rollout graph's. */
export async function loopRollout(run: (feeds: Feeds) => Promise<Fetches>, sampling: Sampling): Promise<Completion[]> {
  const { prompts, samples, maxNewTokens } = sampling;
  const stopIds = (sampling.stops.length ? sampling.stops : [NO_TOKEN]).map(BigInt);
  const promptTime = largest(prompts.map((p) => p.length));
  const lengths = BigInt64Array.from(prompts, (p) => BigInt(p.length));
  const out = await run({
    prompts: integers(padRows(prompts, promptTime), [prompts.length, promptTime]),
    promptLengths: integers(lengths, [prompts.length]),
    uniforms: floats(sampling.uniforms, [maxNewTokens, samples]),
    stops: integers(BigInt64Array.from(stopIds), [stopIds.length]),
    temperature: scalar(sampling.temperature),
    ...sampling.factors,
  });
  const tokens = out['tokens']!.data as BigInt64Array;
  const logProbs = floatData(out['logProbs']);
  const steps = tokens.length / samples;
  const stops = new Set(stopIds);
  return Array.from({ length: samples }, (_, sample) => {
    const written: number[] = [];
    let stopped = false;
    for (let step = 0; step < steps && !stopped; step++) {
      const token = tokens[step * samples + sample]!;
      written.push(Number(token));
      stopped = stops.has(token);
    }
    return {
      tokens: written,
      logProbs: Float32Array.from(written, (_token, step) => logProbs[step * samples + sample]!),
      stopped,
    };
  });
}
