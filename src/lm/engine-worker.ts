/** The engine's thread: takes calls one at a time from its port and posts back results. Ends only by message, never in the middle of a run. */
import { parentPort, workerData } from 'node:worker_threads';
import { Engine } from './engine.js';
import type { EngineSettings } from './engine.js';
import { chooseEngineProvider } from './provider-trial.js';

export interface EngineCall {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}
export type EngineReply =
  | { readonly id: number; readonly result: unknown }
  | {
      readonly id: number;
      readonly error: { readonly name: string; readonly message: string; readonly stack?: string | undefined };
    };

const port = parentPort!;

function failure(id: number, error: unknown): EngineReply {
  const { name, message, stack } = error as Error;
  return { id, error: { name, message, stack } };
}

try {
  const settings = workerData as EngineSettings;
  const engine = await Engine.create(settings, await chooseEngineProvider(settings));
  port.postMessage({ id: 0, result: engine.choice } satisfies EngineReply);
  let queue = Promise.resolve();
  port.on('message', (call: EngineCall) => {
    queue = queue.then(async () => {
      try {
        const method = engine[call.method as keyof Engine] as (...args: readonly unknown[]) => unknown;
        port.postMessage({
          id: call.id,
          result: await method.apply(engine, call.args as unknown[]),
        } satisfies EngineReply);
      } catch (error) {
        port.postMessage(failure(call.id, error));
      }
      if (call.method === 'close') port.close();
    });
  });
} catch (error) {
  port.postMessage(failure(0, error));
}
