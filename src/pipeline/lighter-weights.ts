/** What would make the weights of a run take less memory: of the settings that can, those that do. */
import { COMPUTE_TYPES } from '../onnx/provider-types.js';
import type { Config } from './config.js';
import { plannedProvider, residentBytes } from './resident-memory.js';
import type { SizedModel } from './resident-memory.js';

export function lighterWeights(config: Config, models: readonly SizedModel[]): string[] {
  const now = residentBytes(config, models);
  const helps = (engine: Partial<Config['engine']>): boolean =>
    residentBytes({ ...config, engine: { ...config.engine, ...engine } }, models) < now;
  const narrow = COMPUTE_TYPES[plannedProvider(config.engine)].find((type) => type !== 'float32');
  return [
    ...(narrow !== undefined && helps({ dtype: narrow })
      ? [`set engine.dtype: ${narrow}${config.engine.provider === 'auto' ? ' on cuda' : ''}`]
      : []),
    ...(config.engine.memory === 'fast' && helps({ memory: 'auto' })
      ? ['set engine.memory: auto, where the graphs of a large model share its weights']
      : []),
    ...(helps({ provider: 'cpu', dtype: 'float32' })
      ? ['set engine.provider: cpu, where the graphs of a large model share its weights']
      : []),
    'take smaller models',
    ...(config.models.solver === null ? [] : ['have the solver behind solver.endpoint']),
  ];
}
