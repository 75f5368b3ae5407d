/** Fresh tasks from a generator, for reading or for use elsewhere. Nothing is stored. */
import { propose } from './propose.js';
import { trainedAdapter } from './checkpoints.js';
import type { Workspace } from './workspace.js';

/** One sampled task, in Absolute Zero's fields where it is one. */
export interface SampledTask {
  readonly valid: boolean;
  readonly outcome: string;
  readonly topic: string;
  readonly snippet: string | null;
  readonly input: string | null;
  readonly output: string | null;
  readonly completion: string;
}

/** `count` generations of an arm's trained generator, or of the untrained one (`base`); `stream` picks other samples of the same seed. */
export async function sampleTasks(
  workspace: Workspace,
  arm: string,
  count: number,
  stream: number,
): Promise<SampledTask[]> {
  const adapter = await trainedAdapter(workspace, arm);
  const proposals = await propose(workspace, {
    key: { phase: 'evaluate', arm: `${arm}/sample`, batch: stream },
    size: count,
    adapter,
    temperature: workspace.config.policy.temperature,
    earlier: null,
  });
  return proposals.map(({ row }) => {
    const task = row.task as { snippet: string; input: string } | null;
    return {
      valid: row.valid,
      outcome: row.outcome,
      topic: row.topic,
      snippet: task?.snippet ?? null,
      input: task?.input ?? null,
      output: row.output,
      completion: row.completion,
    };
  });
}
