/** Which setting to change when a server refuses a field of every request. */
import type { ChatSettings } from './chat-protocol.js';
import { refusedField } from './server-words.js';

/** Of the statuses that may mean a field. */
export const FIELD_STATUSES = new Set([400, 422]);

/**
 * The setting that gives the field a refusal names, and what to do with it: `solver.fields.seed: …`. Null when it names no field that a
 * setting gives.
 * @param n attempts that were asked for
 */
export function settingToChange(settings: ChatSettings, n: number, status: number, text: string): string | null {
  if (!FIELD_STATUSES.has(status)) return null;
  const { fields, body, stops, system, model } = settings;
  const advice = new Map<string, string>();
  for (const name of Object.keys(body)) advice.set(name, `solver.body.${name}: drop or correct it`);
  if (stops.length > 0) advice.set('stop', 'solver.stops: give fewer, or none');
  advice.set('model', `solver.model: ${model} is not served; correct it`);
  const leaveOut = 'set it to null to leave the field out, or to the name that the server has for it';
  if (fields.temperature !== null) {
    advice.set(fields.temperature, `solver.temperature: correct it, or set solver.fields.temperature to null`);
  }
  if (fields.seed !== null) advice.set(fields.seed, `solver.fields.seed: ${leaveOut}`);
  if (fields.n !== null && n > 1) advice.set(fields.n, 'solver.samples: set it to single');
  advice.set(fields.max_tokens, limitAdvice(fields.max_tokens, text));
  const field = refusedField(text, [...advice.keys()]);
  if (field !== null) return advice.get(field)!;
  return system !== '' && /\bsystem\b.{0,20}\b(role|message|prompt|instruction)/i.test(text.slice(0, 2000))
    ? 'solver.system: leave it empty, the model takes no system message'
    : null;
}

/** Fields of a request that settings give. */
export function givenFields({ fields, body }: ChatSettings): string[] {
  return ['model', 'messages', 'stop', ...Object.values(fields).filter((name) => name !== null), ...Object.keys(body)];
}

/** The name of the limit is another, or its value is too large. */
function limitAdvice(name: string, text: string): string {
  const other = ['max_completion_tokens', 'max_tokens', 'max_new_tokens', 'max_output_tokens'].find(
    (each) => each !== name && new RegExp(String.raw`(?<!\w)${each}(?!\w)`).test(text.slice(0, 2000)),
  );
  if (/too (large|high|big|many)|at most|(less|greater) than|exceeds?|<=|maximum/i.test(text.slice(0, 2000))) {
    return 'solver.maxNewTokens: lower it';
  }
  return `solver.fields.max_tokens: set it to the name that the server has for this limit${other === undefined ? ', often max_completion_tokens' : `, ${other}`}`;
}
