/** Rollouts token by token over the prompt and step graphs: what stays on the device is handed from run to run, the host sees the tokens. */
import { largest } from '../metrics/extremes.js';
import { MASKED } from '../onnx/emitter.js';
import { dispose, floats, integers, scalar } from '../onnx/session.js';
import type { Feeds, Fetches } from '../onnx/session.js';
import { padRows } from './padding.js';
import type { Completion } from './request-checks.js';
import { FINISHED_TOKEN } from './rollout-graph.js';
import type { Sampling } from './sampling.js';
import { takenAs } from './step-graphs.js';

/** A compiled graph. */
type Run = (feeds: Feeds) => Promise<Fetches>;

/**
 * Completions of all rows, a prompt's samples adjacent: the same as the Loop's. Ends when every sample has drawn a stop token.
 * @param window latest positions that some layers attend to, null for none
 */
export async function stepRollout(
  graphs: { readonly prompt: Run; readonly step: Run },
  sampling: Sampling,
  window: number | null,
): Promise<Completion[]> {
  const { prompts, perPrompt, samples, maxNewTokens, uniforms } = sampling;
  const uniformsOf = (step: number) => floats(uniforms.slice(step * samples, (step + 1) * samples), [samples]);
  const written = Array.from({ length: samples }, () => ({
    tokens: [] as number[],
    logProbs: [] as number[],
    stopped: false,
  }));
  const stops = new Set(sampling.stops);
  /** Take the tokens that a run drew. @returns whether any sample goes on. */
  const take = (out: Fetches): boolean => {
    const [tokens, logProbs] = [out['drawn']!.data, out['logProb']!.data];
    written.forEach((sample, i) => {
      if (sample.stopped) return;
      const token = Number(tokens[i]);
      sample.tokens.push(token);
      sample.logProbs.push(Number(logProbs[i]));
      sample.stopped = stops.has(token);
    });
    return written.some(({ stopped }) => !stopped);
  };

  /** What lies on the device, by the input that takes it. */
  const device: Feeds = {};
  const hand = (out: Fetches): void => {
    for (const [name, tensor] of Object.entries(out)) {
      const input = takenAs(name);
      if (input === null) continue;
      if (device[input]) dispose(device[input]);
      device[input] = tensor;
    }
  };
  try {
    const first = await graphs.prompt({
      ...promptFeeds(prompts),
      uniforms: uniformsOf(0),
      temperature: scalar(sampling.temperature),
      ...sampling.factors,
    });
    hand(first);
    let goesOn = take(first);
    for (let step = 1; step < maxNewTokens && goesOn; step++) {
      const last = BigInt64Array.from(written, ({ tokens, stopped }) =>
        BigInt(stopped ? FINISHED_TOKEN : tokens.at(-1)!),
      );
      const out = await graphs.step({
        ...device,
        token: integers(last, [samples]),
        position: integers(positions(prompts, perPrompt, step - 1), [samples, 1]),
        writtenBias: writtenBias(step, Infinity),
        ...(window === null ? {} : windowFeeds(prompts, step, window)),
        uniforms: uniformsOf(step),
      });
      hand(out);
      goesOn = take(out);
    }
  } finally {
    for (const tensor of Object.values(device)) dispose(tensor);
  }
  return written.map(({ tokens, logProbs, stopped }) => ({ tokens, logProbs: Float32Array.from(logProbs), stopped }));
}

function promptFeeds(prompts: readonly (readonly number[])[]): Feeds {
  const time = largest(prompts.map((p) => p.length));
  const last = new Float32Array(prompts.length * time);
  const bias = new Float32Array(prompts.length * time);
  prompts.forEach(({ length }, p) => {
    last[p * time + length - 1] = 1;
    bias.fill(MASKED, p * time + length, (p + 1) * time);
  });
  return {
    prompts: integers(padRows(prompts, time), [prompts.length, time]),
    last: floats(last, [prompts.length, 1, time]),
    promptBias: floats(bias, [prompts.length, 1, 1, time]),
  };
}

/** Of a step after which so many tokens are written, behind one position that there is not: which of them are seen. */
function writtenBias(step: number, window: number): Feeds[string] {
  const hidden = 1 + Math.max(0, step - window);
  return floats(new Float32Array(step + 1).fill(MASKED, 0, hidden), [step + 1]);
}

/** What layers with a window see of prompts and of what is written, in the step whose token each sample wrote as its `step`th. */
function windowFeeds(prompts: readonly (readonly number[])[], step: number, window: number): Feeds {
  const time = largest(prompts.map((p) => p.length));
  const bias = new Float32Array(prompts.length * time);
  prompts.forEach(({ length }, p) => {
    bias.fill(MASKED, p * time + length, (p + 1) * time);
    // The token stands at length + step − 1.
    bias.fill(MASKED, p * time, p * time + Math.min(time, Math.max(0, length + step - window)));
  });
  return {
    windowPromptBias: floats(bias, [prompts.length, 1, 1, time]),
    windowWrittenBias: writtenBias(step, window),
  };
}

/** The place of the token that each sample wrote as its `nth`, [samples]. */
function positions(prompts: readonly (readonly number[])[], perPrompt: number, nth: number): BigInt64Array {
  return BigInt64Array.from(
    prompts.flatMap(({ length }) => Array.from({ length: perPrompt }, () => BigInt(length + nth))),
  );
}
