/** Where each node of a graph ran: read from the profile that ONNX Runtime writes of a session's runs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

/** A node that ran. */
export interface Placement {
  readonly node: string;
  readonly operator: string;
  /** As ONNX Runtime calls it: `CPUExecutionProvider`, `WebGpuExecutionProvider`, … */
  readonly provider: string;
  /** Type and shape of each output. */
  readonly outputs: readonly { readonly type: string; readonly shape: readonly number[] }[];
}

const eventSchema = z.looseObject({
  cat: z.string(),
  name: z.string(),
  args: z.looseObject({
    provider: z.string().optional(),
    op_name: z.string().optional(),
    output_type_shape: z.array(z.record(z.string(), z.array(z.number()))).optional(),
  }),
});
const KERNEL = '_kernel_time';

/** Placements of the profiles in a folder, each node of each session once. */
export function readPlacements(folder: string): Placement[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.flatMap((file) => placementsOf(readFileSync(join(folder, file), 'utf8')));
}

function placementsOf(profile: string): Placement[] {
  const placements = new Map<string, Placement>();
  for (const { cat, name, args } of z.array(eventSchema).parse(JSON.parse(profile))) {
    if (cat !== 'Node' || !name.endsWith(KERNEL) || args.provider === undefined) continue;
    const node = name.slice(0, -KERNEL.length);
    const outputs = (args.output_type_shape ?? []).flatMap((output) =>
      Object.entries(output).map(([type, shape]) => ({ type, shape })),
    );
    placements.set(node, { node, operator: args.op_name ?? '?', provider: args.provider, outputs });
  }
  return [...placements.values()];
}

const CPU = 'CPUExecutionProvider';

/** How many nodes ran where, by provider. */
export function countPlacements(placements: readonly Placement[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { provider } of placements) counts.set(provider, (counts.get(provider) ?? 0) + 1);
  return counts;
}

/**
 * Nodes that ran on the CPU though another provider was asked for, and should not have: those that compute floating-point tensors.
 * Shapes, positions and token ids are integers, which belong there.
 */
export function unexpectedOnCpu(placements: readonly Placement[]): Placement[] {
  return placements.filter(
    ({ provider, operator, outputs }) =>
      provider === CPU &&
      !operator.startsWith('Memcpy') &&
      outputs.some(({ type, shape }) => type.startsWith('float') && shape.reduce((a, b) => a * b, 1) > 1),
  );
}
