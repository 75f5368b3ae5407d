/** Propose and check: sampled completions as rows of tasks, with the tasks that came out valid. */
import { computedOutput, type CodeTask } from '../domain/azr/index.js';
import type { Adapter } from '../lm/adapter.js';
import { CompletionEnd } from '../lm/completion-end.js';
import type { LanguageModel } from '../lm/language-model.js';
import type { Completion } from '../lm/request-checks.js';
import { deriveSeed } from '../metrics/random.js';
import type { SyntaxFacts } from '../sandbox/sandbox.js';
import { taskId } from '../store/rows.js';
import type { BatchKey, Json, TaskRow } from '../store/rows.js';
import { chatOf } from './chat.js';
import type { Workspace } from './workspace.js';

export interface Proposal {
  readonly row: TaskRow;
  /** The task with its answer; null when invalid. */
  readonly task: CodeTask | null;
  readonly prompt: readonly number[];
  readonly completion: Completion;
}

/** A proposal that came out valid. */
export type ValidProposal = Proposal & { readonly task: CodeTask };

export interface ProposeOptions {
  readonly key: BatchKey;
  /** Who writes. */
  readonly policy: LanguageModel;
  readonly size: number;
  readonly adapter: Adapter | null;
  readonly temperature: number;
  /** Rendered texts of the run's earlier valid tasks, when a repeat is invalid. */
  readonly earlier: ReadonlySet<string> | null;
  /** Called when sampling has ended and checking begins. */
  readonly onSampled?: () => void;
}

/** Sample a batch from the policy and check it. What comes out follows from (seed, phase, arm, batch). */
export async function propose(workspace: Workspace, options: ProposeOptions): Promise<Proposal[]> {
  const { config, domain } = workspace;
  const { key } = options;
  const ending = taskEnding(workspace, options.policy);
  const samples = await sampleKinds(workspace, options);
  options.onSampled?.();
  const texts = samples.map(({ completion }) => ending.textOf(completion.tokens));
  const parsed = samples.map(({ kind, completion }, i) => (completion.stopped ? domain.parse(kind, texts[i]!) : null));
  const checks = await workspace.check(parsed, options.earlier);
  return samples.map(({ kind, seed, prompt, completion }, item) => {
    const { task, ...check } = checks[item]!;
    const row: TaskRow = {
      ...key,
      id: taskId(key, item),
      item,
      type: kind,
      seed,
      completion: texts[item]!,
      tokens: completion.tokens.length,
      valid: check.valid,
      outcome: completion.stopped ? check.outcome : 'cut_off',
      detail: completion.stopped ? check.detail : `no end within ${config.policy.maxNewTokens} tokens`,
      topic: check.topic,
      structure: structureOf(check.facts),
      rendered: task && domain.render(task),
      task: (task ?? parsed[item]!) as unknown as Json,
      output: task && computedOutput(task),
    };
    return { row, task, prompt, completion };
  });
}

/** Of a program's syntax facts. */
export function structureOf(facts: SyntaxFacts | null): TaskRow['structure'] {
  if (facts === null) return null;
  const { depth, cyclomatic, lines, variables } = facts;
  return { depth, cyclomatic, lines, variables };
}

interface Sample {
  readonly kind: string;
  readonly seed: number;
  readonly prompt: readonly number[];
  readonly completion: Completion;
}

/** The batch's completions, dealt out over the domain's kinds: each kind has one prompt and a random stream of its own. */
async function sampleKinds(workspace: Workspace, options: ProposeOptions): Promise<Sample[]> {
  const { config, domain } = workspace;
  const { key } = options;
  const samples: Sample[] = [];
  for (const [index, { kind, size }] of dealOut(options.size, domain.kinds).entries()) {
    const stream = `sample ${key.phase} ${key.arm}${index === 0 ? '' : ` ${kind}`}`;
    const seed = deriveSeed(config.seed, stream, key.batch);
    for (const sample of await sampleKind(workspace, options, { kind, size, seed })) samples.push(sample);
  }
  return samples;
}

/** A batch's completions of one kind. What comes out follows from the seed, which its rows keep, and from how many there are. */
export async function sampleKind(
  { config, domain }: Pick<Workspace, 'config' | 'domain'>,
  { key, policy, temperature, adapter }: Pick<ProposeOptions, 'key' | 'policy' | 'temperature' | 'adapter'>,
  { kind, size, seed }: { readonly kind: string; readonly size: number; readonly seed: number },
): Promise<Sample[]> {
  const { tokenizer } = policy;
  const promptSeed = deriveSeed(config.seed, `prompt ${key.phase} ${key.arm}`, key.batch);
  const prompt = tokenizer.question(domain.prompt(kind, promptSeed), chatOf(config.policy, domain));
  const completions = await policy.sample({
    prompts: [prompt],
    perPrompt: size,
    maxNewTokens: config.policy.maxNewTokens,
    temperature,
    ...taskEnding({ config, domain }, policy).request,
    seed,
    adapter,
  });
  return completions.map((completion) => ({ kind, seed, prompt, completion }));
}

/** What ends a task that a generator writes. */
export function taskEnding({ config, domain }: Pick<Workspace, 'config' | 'domain'>, { tokenizer }: LanguageModel) {
  return new CompletionEnd(tokenizer, config.policy.stops, domain.taskEnd);
}

/** `size` items in shares as equal as can be, the remainder to the first kinds; a kind without an item is left out. */
export function dealOut(size: number, kinds: readonly string[]): { readonly kind: string; readonly size: number }[] {
  const share = Math.floor(size / kinds.length);
  const remainder = size % kinds.length;
  return kinds
    .map((kind, index) => ({ kind, size: share + (index < remainder ? 1 : 0) }))
    .filter((dealt) => dealt.size > 0);
}
