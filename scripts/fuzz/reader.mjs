// The thread in which a reader is given its inputs, one after another; main.mjs watches it.
import { parentPort, workerData } from 'node:worker_threads';
import { RunError, UserError } from '../../dist/errors.js';
import { inputOf } from './mutate.mjs';

const { part, name, inputs, seed, shared, megabytes } = workerData;
const { parsers } = await import(part);
const parser = parsers.find((one) => one.name === name);
const total = Math.max(inputs, (parser.hostile ?? []).length);
const used = () => {
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1e6;
};

for (let index = 0; index < total; index++) {
  const bytes = inputOf(parser, index, seed);
  const before = used();
  // Counted from one: zero is the time before the first.
  Atomics.store(shared, 0, index + 1);
  try {
    await parser.parse(bytes);
    Atomics.add(shared, 1, 1);
  } catch (error) {
    if (!(error instanceof UserError) && !(error instanceof RunError)) {
      const { stack = String(error) } = error ?? {};
      parentPort.postMessage({
        what: `not an error of the project's: ${stack.split('\n').slice(0, 4).join(' ')}`,
        index: index + 1,
      });
      process.exit(0);
    }
    if (/\n/.test(error.message.trim()) || error.message === '') {
      parentPort.postMessage({
        what: `not one line: ${JSON.stringify(error.message.slice(0, 300))}`,
        index: index + 1,
      });
      process.exit(0);
    }
    Atomics.add(shared, 2, 1);
  }
  const grown = used() - before;
  if (grown > megabytes) {
    parentPort.postMessage({ what: `${Math.round(grown)} MB for one input`, index: index + 1 });
    process.exit(0);
  }
}
parentPort.postMessage(null);
