/** Fresh tasks from a generator, for reading or for use elsewhere. Nothing is stored. */
import type { CodeTask } from '../domain/azr/index.js';
import { describeOutcomes } from './invalid-outcomes.js';
import { propose } from './propose.js';
import { trainedAdapter } from './checkpoints.js';
import type { Workspace } from './workspace.js';

/** One sampled task, in Absolute Zero's fields where it is one. */
export interface SampledTask {
  readonly type: string;
  readonly valid: boolean;
  readonly outcome: string;
  /** Why it is not valid. */
  readonly detail: string;
  readonly topic: string;
  /** What the generator was given, special tokens by their names. */
  readonly prompt: string;
  readonly completion: string;
  /** Null when the completion is no task; its outputs are null unless it is valid. */
  readonly task: RecordedFields | null;
}

/** Absolute Zero's fields: of a task with one call, or of an induction task. */
export type RecordedFields =
  | { readonly snippet: string; readonly input: string; readonly output: string | null }
  | {
      readonly snippet: string;
      readonly inputs: readonly string[];
      readonly outputs: readonly string[] | null;
      readonly message: string;
    };

/** What to say of samples none of which is valid; nothing of others. */
export function warnOfNone(sampled: readonly SampledTask[]): string[] {
  if (sampled.some(({ valid }) => valid)) return [];
  return [`none of ${sampled.length} generations is valid`, ...describeOutcomes(sampled)];
}

/** `count` generations of an arm's trained generator, or of the untrained one (`base`); `stream` picks other samples of the same seed. */
export async function sampleTasks(
  workspace: Workspace,
  arm: string,
  count: number,
  stream: number,
): Promise<SampledTask[]> {
  const adapter = await trainedAdapter(workspace, arm);
  const policy = await workspace.policy(arm);
  const proposals = await propose(workspace, {
    key: { phase: 'evaluate', arm: `${arm}/sample`, batch: stream },
    policy,
    size: count,
    adapter,
    temperature: workspace.config.policy.temperature,
    earlier: null,
  });
  return proposals.map(({ row: { type, valid, outcome, detail, topic, completion, task }, prompt }) => ({
    type,
    valid,
    outcome,
    detail,
    topic,
    prompt: policy.tokenizer.show(prompt),
    completion,
    task: task === null ? null : recordedFields(task as unknown as CodeTask),
  }));
}

function recordedFields(task: CodeTask): RecordedFields {
  const { snippet } = task;
  if (task.type !== 'code_f') return { snippet, input: task.input, output: task.output };
  return { snippet, inputs: task.inputs, outputs: task.outputs, message: task.message };
}
