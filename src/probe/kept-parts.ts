/** Parts of the training of probes as bytes: JSON, in which arrays of numbers are their own bits. */
import type { KeptWork } from '../store/kept-work.js';

/** What can be kept: values of JSON, and arrays of numbers anywhere in them. */
type Keepable = null | boolean | number | string | Float32Array | Float64Array | readonly Keepable[] | KeepableObject;
interface KeepableObject {
  readonly [key: string]: Keepable | undefined;
}

const ARRAYS = { Float32Array, Float64Array } as const;
type ArrayName = keyof typeof ARRAYS;

/** What a part came to: as it was kept, bit by bit, or by doing it now. Without anything to keep it in it is done. */
export async function keptPart<Value extends object>(
  work: KeptWork | undefined,
  name: string,
  run: () => Promise<Value>,
): Promise<Value> {
  if (!work) return run();
  const bytes = await work.part(name, async () => encode((await run()) as Keepable));
  return decode(bytes) as Value;
}

function encode(value: Keepable): Uint8Array {
  const text = JSON.stringify(value, (_, item: unknown) => {
    const kind = nameOf(item);
    if (kind === null) return item;
    const { buffer, byteOffset, byteLength } = item as Float64Array;
    return { [kind]: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
  });
  return new TextEncoder().encode(text);
}

function decode(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(bytes), (_, item: unknown) => {
    const [kind, ...others] = typeof item === 'object' && item !== null ? Object.keys(item) : [];
    if (kind === undefined || others.length > 0 || !Object.hasOwn(ARRAYS, kind)) return item;
    const numbers = Uint8Array.from(Buffer.from((item as Record<string, string>)[kind]!, 'base64'));
    return new ARRAYS[kind as ArrayName](numbers.buffer);
  });
}

function nameOf(item: unknown): ArrayName | null {
  if (item instanceof Float32Array) return 'Float32Array';
  return item instanceof Float64Array ? 'Float64Array' : null;
}
