/** How a configuration names a model: a checkpoint, or a checkpoint with a LoRA adapter on it. */
import { z } from 'zod';

/** A checkpoint folder, or a model of the Hugging Face hub that has been pulled; by itself, or with the PEFT folder of an adapter. */
export const modelSchema = z.union([
  z.string().min(1),
  z.strictObject({
    base: z.string().min(1).describe('Checkpoint folder or hub id.'),
    adapter: z.string().min(1).describe('PEFT folder of a LoRA adapter for it.'),
  }),
]);
export type ModelSetting = z.output<typeof modelSchema>;

/** The checkpoint's name. */
export function baseOf(model: ModelSetting): string {
  return typeof model === 'string' ? model : model.base;
}

/** Both in one text. */
export function nameOf(model: ModelSetting): string {
  return typeof model === 'string' ? model : `${model.base} with ${model.adapter}`;
}

/** The adapter's folder as it is named; null where there is none. */
export function adapterOf(model: ModelSetting): string | null {
  return typeof model === 'string' ? null : model.adapter;
}
