/** The process that proves one provider: `provider-proof-worker.js PROVIDER MODEL`; prints its proof as JSON. An empty MODEL is none. */
import type { ExecutionProvider } from '../onnx/session.js';
import { proveProvider } from './provider-proof.js';

const [provider, folder] = process.argv.slice(2) as [ExecutionProvider, string];
process.stdout.write(JSON.stringify(await proveProvider(provider, folder || null)));
