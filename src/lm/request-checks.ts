/** What is asked of a model, and what can be: token ids it knows, sequences no longer than its positions, layers it has. */
import { UserError } from '../errors.js';
import { layoutKey } from './adapter.js';
import type { Adapter } from './adapter.js';
import { positionLimit } from './config.js';
import type { DecoderConfig } from './config.js';
import type { TokenEnds } from './token-ends.js';

export interface RolloutRequest {
  /** Token ids of each prompt, none empty. */
  readonly prompts: readonly (readonly number[])[];
  readonly perPrompt: number;
  readonly maxNewTokens: number;
  readonly temperature: number;
  /** Tokens that end a completion. */
  readonly stops: readonly number[];
  /** What else ends one, by what its tokens say. */
  readonly ends?: TokenEnds;
  readonly seed: number;
  readonly adapter: Adapter | null;
}

/** Rollouts of several adapters of one layout in one batch. */
export interface GroupedRolloutRequest extends Omit<RolloutRequest, 'prompts' | 'seed' | 'adapter'> {
  readonly groups: readonly RolloutGroup[];
}

/** An adapter's share of a batch: with its own seed it draws what a request of its own would. */
export interface RolloutGroup {
  readonly adapter: Adapter;
  readonly prompts: readonly (readonly number[])[];
  readonly seed: number;
}

/** One sample: what was written, the token that ends it included and whole, and the log-probability of each token. */
export interface Completion {
  readonly tokens: number[];
  readonly logProbs: Float32Array;
  /** False when it ran into `maxNewTokens`. */
  readonly stopped: boolean;
}

export interface HiddenRequest {
  readonly sequences: readonly (readonly number[])[];
  readonly layers: readonly number[];
  readonly poolings: readonly Pooling[];
  /** What is adapted on the checkpoint; nothing unless it is given. */
  readonly adapter?: Adapter | null | undefined;
}

export const POOLINGS = ['mean', 'last'] as const;
/**
 * What the poolings are of a sequence's states; of a single token both are its own. The first token is left out of the mean, be it a begin
 * token or not: models that begin with one put much attention on it, and its state says little of the text.
 */
export const POOLING_MEANING = 'mean is over the tokens after the first, last is the last token’s';
export type Pooling = (typeof POOLINGS)[number];

/** @throws UserError when a sequence is empty, too long with `room` tokens to come, or holds an id that is no token. */
function checkSequences(config: DecoderConfig, sequences: readonly (readonly number[])[], room: number): void {
  const { vocabulary } = config;
  sequences.forEach((sequence, i) => {
    if (!sequence.length) throw new UserError(`sequence ${i} has no tokens`);
    checkLength(config, sequence.length + room);
    const unknown = sequence.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary);
    if (unknown !== undefined) {
      throw new UserError(`sequence ${i} has token ${unknown}, the model's are 0 to ${vocabulary - 1}`);
    }
  });
}

/** @throws UserError when a sequence is longer than the model's positions. */
export function checkLength(config: DecoderConfig, time: number): void {
  if (time > config.maxPositions) {
    throw new UserError(`${time} tokens are more than ${positionLimit(config)}: shorten the texts`);
  }
}

/** @throws UserError for a rollout that cannot be. */
export function checkRollout(config: DecoderConfig, request: RolloutRequest): void {
  const { prompts, perPrompt, maxNewTokens, temperature, stops } = request;
  if (!Number.isInteger(perPrompt) || perPrompt < 1) throw new UserError(`${perPrompt} samples a prompt: at least 1`);
  if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1)
    throw new UserError(`${maxNewTokens} new tokens: at least 1`);
  if (!(temperature > 0 && Number.isFinite(temperature))) {
    throw new UserError(`temperature ${temperature} is not a number above 0`);
  }
  checkSequences(config, prompts, maxNewTokens);
  checkSequences(
    config,
    stops.map((stop) => [stop]),
    0,
  );
}

/** @throws UserError for rollouts that cannot share a batch. */
export function checkGroups(config: DecoderConfig, { groups, ...request }: GroupedRolloutRequest): void {
  for (const group of groups) checkRollout(config, { ...request, ...group });
  const empty = groups.findIndex(({ prompts }) => !prompts.length);
  if (empty >= 0) throw new UserError(`adapter ${empty} of the batch has no prompts`);
  const layouts = new Set(groups.map(({ adapter }) => layoutKey(adapter.layout)));
  if (layouts.size > 1) throw new UserError('adapters in one batch must have one rank, alpha and list of targets');
}

/** @throws UserError for hidden states that the model does not have. */
export function checkHidden(config: DecoderConfig, { sequences, layers }: HiddenRequest): void {
  const missing = layers.find((layer) => !Number.isInteger(layer) || layer < 0 || layer > config.layers);
  if (missing !== undefined) {
    throw new UserError(
      `the model has no hidden states ${missing}: 0 are the embeddings, ${config.layers} the last layer's`,
    );
  }
  checkSequences(config, sequences, 0);
}
