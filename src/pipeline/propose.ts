/** Propose and check: sampled completions as rows of tasks, with the tasks that came out valid. */
import type { CodeTask } from '../domain/azr/index.js';
import type { Adapter } from '../lm/adapter.js';
import type { Completion } from '../lm/request-checks.js';
import { deriveSeed } from '../metrics/random.js';
import { taskId } from '../store/rows.js';
import type { BatchKey, Json, TaskRow } from '../store/rows.js';
import type { Workspace } from './workspace.js';

export interface Proposal {
  readonly row: TaskRow;
  /** The task with its answer; null when invalid. */
  readonly task: CodeTask | null;
  readonly prompt: readonly number[];
  readonly completion: Completion;
}

export interface ProposeOptions {
  readonly key: BatchKey;
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
  const policy = await workspace.policy();
  const { tokenizer } = policy;
  const seed = deriveSeed(config.seed, `sample ${key.phase} ${key.arm}`, key.batch);
  const prompt = tokenizer.prompt(domain.prompt(deriveSeed(config.seed, `prompt ${key.phase} ${key.arm}`, key.batch)));
  const completions = await policy.sample({
    prompts: [prompt],
    perPrompt: options.size,
    maxNewTokens: config.policy.maxNewTokens,
    temperature: options.temperature,
    stops: [...new Set([tokenizer.eos, ...config.policy.stops.map((text) => tokenizer.singleToken(text))])],
    seed,
    adapter: options.adapter,
  });
  options.onSampled?.();
  const texts = completions.map((completion) => tokenizer.decode(completion.tokens));
  const parsed = completions.map((completion, i) => (completion.stopped ? domain.parse(texts[i]!) : null));
  const checks = await domain.check(
    parsed,
    await workspace.sandbox(),
    options.earlier ? { earlier: options.earlier } : {},
  );
  return completions.map((completion, item) => {
    const check = checks[item]!;
    const task = parsed[item]!;
    const row: TaskRow = {
      ...key,
      id: taskId(key, item),
      item,
      seed,
      completion: texts[item]!,
      tokens: completion.tokens.length,
      valid: check.valid,
      outcome: completion.stopped ? check.outcome : 'cut_off',
      detail: completion.stopped ? check.detail : `no end within ${config.policy.maxNewTokens} tokens`,
      topic: check.topic,
      rendered: task ? domain.render(task) : null,
      task: (check.task ?? task) as unknown as Json,
      output: check.task?.output ?? null,
    };
    return { row, task: check.task, prompt, completion };
  });
}
