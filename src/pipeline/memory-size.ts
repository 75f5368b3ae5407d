/** Sizes as people write them, and what `engine.memory` says: how models are planned, and what the run may take. */
import { MEMORY_SETTINGS } from '../lm/memory.js';
import type { MemorySetting } from '../lm/memory.js';

const UNITS: Readonly<Record<string, number>> = { MB: 1e6, GB: 1e9, MiB: 2 ** 20, GiB: 2 ** 30 };
const SIZE = String.raw`(\d+(?:\.\d+)?)\s*(MB|GB|MiB|GiB)`;

/** What `engine.memory` may be. */
export const ENGINE_MEMORY = new RegExp(`^(?:${MEMORY_SETTINGS.join('|')}|${SIZE})$`);

/** `24GiB` → bytes; null for what is no size. */
export function memorySize(text: string): number | null {
  const [, number, unit] = new RegExp(`^${SIZE}$`).exec(text) ?? [];
  return number === undefined ? null : Number(number) * UNITS[unit!]!;
}

/** Bytes → `1.5 GiB`. */
export function sizeText(bytes: number): string {
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

export interface EngineMemory {
  readonly setting: MemorySetting;
  /** Bytes that the run may take; null: as many as it does. */
  readonly budget: number | null;
}

/** Under a budget models are planned by their size, and what is left is for their passes. */
export function engineMemory({ memory }: { readonly memory: string }): EngineMemory {
  const budget = memorySize(memory);
  return { setting: budget === null ? (memory as MemorySetting) : 'auto', budget };
}
