/** Sizes as people write them, and what `engine.memory` says: how models are planned, and what the run may take. */
import { MEMORY_SETTINGS } from '../lm/memory.js';
import type { MemorySetting } from '../lm/memory.js';

/** Powers of a thousand, and with an i of 1024: `24GB`, `24GiB`, `24gb`, `24Gi`. */
const SIZE = String.raw`(?=[\d.]*[1-9])(\d+(?:\.\d+)?)\s*([MmGgTt])([Ii])?[Bb]?`;
const POWER: Readonly<Record<string, number>> = { m: 2, g: 3, t: 4 };

/** What `engine.memory` may be. */
export const ENGINE_MEMORY = new RegExp(`^(?:${MEMORY_SETTINGS.join('|')}|${SIZE})$`);

/** `24GiB` → bytes; null for what is no size, or none at all. */
export function memorySize(text: string): number | null {
  const [, number, letter, binary] = new RegExp(`^${SIZE}$`).exec(text) ?? [];
  if (number === undefined) return null;
  return Number(number) * (binary === undefined ? 1000 : 1024) ** POWER[letter!.toLowerCase()]!;
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
