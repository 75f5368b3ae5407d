// Fuzzes every reader of what comes from outside. Seeds are mutated by a seeded generator; hostile inputs, written by hand, come first.
//   npm run fuzz                                  20,000 inputs a reader
//   npm run fuzz -- --inputs 500 --part answers --seed 7
// An input must be read or refused with one of the project's own errors, within 2 s of processor time and 200 MB. The first input that is
// not fails its reader; it is written to a file, and the exit code is 1. A part is a file of this folder that exports `parsers`:
// { name, seeds, hostile, parse }, where `parse` takes the bytes.
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

const SECONDS = 2;
/** Of V8's heap, and of buffers beside it. */
const MEGABYTES = 200;
const POLL_MS = 50;
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const NOT_PARTS = new Set(['main.mjs', 'reader.mjs', 'mutate.mjs']);

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '20000' },
    part: { type: 'string' },
    parser: { type: 'string' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
});

const parts = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.mjs') && !NOT_PARTS.has(file))
  .filter((file) => values.part === undefined || file === `${values.part}.mjs`)
  .toSorted();
const results = [];
for (const part of parts) {
  const { parsers } = await import(new URL(part, import.meta.url).href);
  for (const { name } of parsers) {
    if (values.parser !== undefined && name !== values.parser) continue;
    const result = await fuzz(part, name, Number(values.inputs), Number(values.seed));
    results.push(result);
    if (!values.json) process.stdout.write(`${line(result)}\n`);
  }
}
if (values.json) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
process.exitCode = results.length > 0 && results.every(({ fault }) => fault === null) ? 0 : 1;

/** Every input of one reader, in a thread that is watched. */
async function fuzz(part, name, inputs, seed) {
  // Which input is under way, its processor time so far in µs, and how many were read and refused.
  const shared = new Int32Array(new SharedArrayBuffer(16));
  const worker = new Worker(new URL('reader.mjs', import.meta.url), {
    workerData: { part: new URL(part, import.meta.url).href, name, inputs, seed, shared, megabytes: MEGABYTES },
    resourceLimits: { maxOldGenerationSizeMb: 2 * MEGABYTES },
    stdout: true,
    stderr: true,
  });
  const began = performance.now();
  let input = -1;
  let startedAt = process.cpuUsage();
  const fault = await new Promise((resolve) => {
    const watch = setInterval(() => {
      const current = Atomics.load(shared, 0);
      if (current !== input) {
        input = current;
        startedAt = process.cpuUsage();
        return;
      }
      const { user, system } = process.cpuUsage(startedAt);
      // Loading the part itself is no input.
      if (current > 0 && user + system > (SECONDS + 2 * (POLL_MS / 1000)) * 1e6) {
        end({ what: `more than ${SECONDS} s of processor time`, index: current });
      }
    }, POLL_MS);
    const end = (found) => {
      clearInterval(watch);
      resolve(found);
    };
    worker.on('message', end);
    worker.on('error', (error) =>
      end({ what: `${error.name ?? 'Error'}: ${error.message}`, index: Atomics.load(shared, 0) }),
    );
    worker.on('exit', (code) =>
      end(code === 0 ? null : { what: `its thread ended with code ${code}`, index: Atomics.load(shared, 0) }),
    );
  });
  await worker.terminate();
  const result = {
    part: part.replace('.mjs', ''),
    name,
    read: Atomics.load(shared, 1),
    refused: Atomics.load(shared, 2),
    seconds: Number(((performance.now() - began) / 1000).toFixed(1)),
    fault: null,
  };
  if (fault === null) return result;
  const { inputOf } = await import('./mutate.mjs');
  const { parsers } = await import(new URL(part, import.meta.url).href);
  const bytes = inputOf(
    parsers.find((parser) => parser.name === name),
    fault.index - 1,
    seed,
  );
  const file = join(mkdtempSync(join(tmpdir(), 'propel-fuzz-')), `${name.replaceAll(/\W+/g, '-')}-${fault.index - 1}`);
  writeFileSync(file, bytes);
  return { ...result, fault: { what: fault.what, input: fault.index - 1, bytes: bytes.length, file } };
}

function line({ part, name, read, refused, seconds, fault }) {
  const counts = `${String(read).padStart(6)} read ${String(refused).padStart(6)} refused ${seconds.toFixed(1).padStart(6)} s`;
  const verdict =
    fault === null ? 'holds' : `FAILS on input ${fault.input} (${fault.bytes} bytes, ${fault.file}): ${fault.what}`;
  return `${`${part}: ${name}`.padEnd(44)} ${counts}  ${verdict}`;
}
