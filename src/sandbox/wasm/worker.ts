/** Entry of the sandbox's worker threads: boots a snapshot and posts it, or serves requests one after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { bootSnapshot, Interpreter, type Snapshot } from './interpreter.js';
import { PAGE_BYTES } from './module.js';
import type { FromWorker, Place, Reply, Request, ToWorker, WorkerJob } from './protocol.js';
import { serveLiterals, servePass } from './serve.js';
import { currentThread, threadMilliseconds } from './thread-clock.js';

const port = parentPort;
if (port === null) throw new Error('worker.js is started by the sandbox, as a worker thread');

const modules = new Map<number, WebAssembly.Module>();
const snapshots = new Map<number, Snapshot>();
/** Interpreters of one memory maximum, by variant; another maximum replaces them all. */
let interpreters = new Map<number, Interpreter>();
let interpretersPages = 0;
/** What was given up with former interpreters. */
let discardedBytes = 0;

/** Memories that were given up are not freed at once. A worker that holds this much in vain is replaced, which frees it. */
const WORN_BYTES = 256 << 20;

const thread = currentThread();
const began = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));

/** The interpreter is set up: the time that the program may take runs from here. */
function begin(): void {
  began[0] ||= threadMilliseconds(thread) ?? 0;
}

function isWorn(): boolean {
  const held = [...interpreters.values()].map((each) => each.discardedBytes + each.grownBytes);
  return held.reduce((sum, bytes) => sum + bytes, discardedBytes) > WORN_BYTES;
}

function interpreterAt(place: Place): Interpreter {
  if (interpretersPages !== place.memoryPages) {
    for (const each of interpreters.values()) discardedBytes += each.discardedBytes + each.memoryBytes;
    interpreters = new Map();
    interpretersPages = place.memoryPages;
  }
  const existing = interpreters.get(place.variant);
  if (existing !== undefined) return existing;
  const module = modules.get(place.memoryPages);
  const snapshot = snapshots.get(place.variant);
  if (module === undefined || snapshot === undefined) throw new Error('a request came before its module or snapshot');
  const interpreter = new Interpreter(module, snapshot);
  interpreters.set(place.variant, interpreter);
  return interpreter;
}

function serve(request: Request, place: Place): Reply {
  const started = performance.now();
  const interpreter = interpreterAt(place);
  const reply =
    request.kind === 'pass'
      ? servePass(interpreter, place.memoryPages * PAGE_BYTES, request, begin)
      : serveLiterals(interpreter, request);
  return { ...reply, milliseconds: performance.now() - started };
}

const job = workerData as WorkerJob;
if (job.job === 'boot') {
  port.postMessage(bootSnapshot(job.module, job.source, job.variant));
} else {
  port.on('message', ({ id, request, place, module, snapshot }: ToWorker) => {
    if (module !== undefined) modules.set(place.memoryPages, module);
    if (snapshot !== undefined) snapshots.set(place.variant, snapshot);
    const message: FromWorker = { kind: 'reply', id, reply: serve(request, place), worn: isWorn() };
    port.postMessage(message);
  });
  port.postMessage({ kind: 'ready', thread, began } satisfies FromWorker);
}
