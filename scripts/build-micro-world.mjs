// Rebuilds the micro-world's corpus, tokenizer and models with the compiled package: about two hours on two cores. Stopped and started
// again, it goes on; delete .cache/micro-world to start over. `npm run build:micro-world`
import { join } from 'node:path';
import { createProgress } from '../dist/cli/progress.js';
import { buildMicroWorld } from '../dist/pipeline/micro-world/build.js';
import { CORPUS, MODELS } from '../dist/pipeline/micro-world/recipe.js';
import { packageRoot } from '../dist/pipeline/paths.js';

await buildMicroWorld({
  corpus: CORPUS,
  models: MODELS,
  cache: join(packageRoot(), '.cache', 'micro-world'),
  target: join(packageRoot(), 'data', 'micro-world'),
  progress: createProgress,
});
