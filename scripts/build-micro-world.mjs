// Rebuilds the micro-world's corpus, tokenizer and models with the compiled package: hours on two cores. `npm run build` first.
import { createProgress } from '../dist/cli/progress.js';
import { buildMicroWorld } from '../dist/pipeline/micro-world/build.js';

await buildMicroWorld(createProgress);
