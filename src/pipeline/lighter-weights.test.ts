/** What would help a run whose weights are too large, by a model of 3 billion parameters and one of a few thousand. */
import { describe, expect, it } from 'vitest';
import { QWEN_3B } from '../../tests/qwen-configs.js';
import { TINY_LLAMA } from '../../tests/tiny-checkpoint.js';
import { parseConfig } from '../lm/config.js';
import { loadConfig } from './config-file.js';
import { lighterWeights } from './lighter-weights.js';
import type { SizedModel } from './resident-memory.js';

const settings = ['models.policy', 'models.reference', 'models.solver'];
const large: SizedModel = { settings, config: parseConfig(JSON.stringify(QWEN_3B), 'config.json'), types: ['F32'] };
const advice = (model: SizedModel, ...engine: string[]) =>
  lighterWeights(loadConfig('pipelines/azr-micro.yaml', engine), [model]);

const ALWAYS = ['take smaller models', 'have the solver behind solver.endpoint'];
const CPU = 'set engine.provider: cpu, where the graphs of a large model share its weights';

describe('lighter weights', () => {
  it('come of a narrow type, where the provider has one and the weights are not in it yet', () => {
    expect(advice(large, 'engine.provider=cuda')).toEqual(['set engine.dtype: bfloat16', ...ALWAYS]);
    expect(advice(large, 'engine.provider=auto')).toEqual(['set engine.dtype: bfloat16 on cuda', ...ALWAYS]);
    expect(advice({ ...large, types: ['BF16'] }, 'engine.provider=cuda')).toEqual(ALWAYS);
    expect(advice(large, 'engine.provider=cpu')).toEqual(ALWAYS);
  });

  it('come of one copy, where there are many', () => {
    expect(advice(large, 'engine.provider=webgpu')).toEqual(['set engine.dtype: float16', CPU, ...ALWAYS]);
    expect(advice(large, 'engine.provider=cpu', 'engine.memory=fast')).toEqual([
      'set engine.memory: auto, where the graphs of a large model share its weights',
      ...ALWAYS,
    ]);
  });

  it('of a small model, which is never shared, are a smaller one', () => {
    expect(advice({ settings, config: TINY_LLAMA, types: ['F32'] }, 'engine.provider=cpu')).toEqual(ALWAYS);
    const behind = ['models.solver=null', 'solver.endpoint=http://x', 'solver.model=m'];
    expect(advice({ settings, config: TINY_LLAMA, types: ['F32'] }, 'engine.provider=cpu', ...behind)).toEqual([
      'take smaller models',
    ]);
  });
});
