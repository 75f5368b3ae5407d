/** Adapters: PEFT folders there and back, and every way one can be wrong. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, TINY_LLAMA, TINY_QWEN2 } from '../../tests/tiny-checkpoint.js';
import { factorShapes, initialAdapter, TARGET_MODULES } from './adapter.js';
import { readAdapter, writeAdapter } from './adapter-folder.js';
import type { AdapterLayout } from './adapter.js';
import { readTensors, writeTensors } from './safetensors.js';

const LAYOUT: AdapterLayout = { rank: 4, alpha: 8, targets: ['q_proj', 'v_proj'] };

function written(layout = LAYOUT): string {
  const folder = temporaryFolder();
  writeAdapter(folder, initialAdapter(TINY_LLAMA, layout, 1), 'models/base');
  return folder;
}

describe('a fresh adapter', () => {
  it('has A of variance 1 / in and B zero, in layer order, the same for the same seed', () => {
    const { factors } = initialAdapter({ ...TINY_LLAMA, width: 64, layers: 8 }, { ...LAYOUT, rank: 16 }, 5);
    const A = [...factors].filter(([name]) => name.endsWith('lora_A')).flatMap(([, t]) => [...t.data]);
    // 16 factors A of 16 · 64 numbers: the standard error of the variance is √(2 / 16384) ≈ 1.1%.
    expect(A).toHaveLength(16 * 16 * 64);
    expect(64 * (A.reduce((sum, a) => sum + a * a, 0) / A.length)).toBeCloseTo(1, 1);
    const B = [...factors].filter(([name]) => name.endsWith('lora_B')).flatMap(([, t]) => [...t.data]);
    expect(B.every((b) => b === 0)).toBe(true);
    expect(initialAdapter(TINY_LLAMA, LAYOUT, 5)).toEqual(initialAdapter(TINY_LLAMA, LAYOUT, 5));
    expect(initialAdapter(TINY_LLAMA, LAYOUT, 5)).not.toEqual(initialAdapter(TINY_LLAMA, LAYOUT, 6));
  });

  it('has factors for every target of every layer, shaped by the module', () => {
    const shapes = factorShapes(TINY_QWEN2, { rank: 3, alpha: 3, targets: [...TARGET_MODULES] });
    expect(shapes.size).toBe(2 * 7 * 2);
    expect(Object.fromEntries([...shapes].filter(([name]) => name.startsWith('model.layers.1.')))).toEqual({
      'model.layers.1.self_attn.q_proj.lora_A': [3, 16],
      'model.layers.1.self_attn.q_proj.lora_B': [24, 3],
      'model.layers.1.self_attn.k_proj.lora_A': [3, 16],
      'model.layers.1.self_attn.k_proj.lora_B': [12, 3],
      'model.layers.1.self_attn.v_proj.lora_A': [3, 16],
      'model.layers.1.self_attn.v_proj.lora_B': [12, 3],
      'model.layers.1.self_attn.o_proj.lora_A': [3, 24],
      'model.layers.1.self_attn.o_proj.lora_B': [16, 3],
      'model.layers.1.mlp.gate_proj.lora_A': [3, 16],
      'model.layers.1.mlp.gate_proj.lora_B': [24, 3],
      'model.layers.1.mlp.up_proj.lora_A': [3, 16],
      'model.layers.1.mlp.up_proj.lora_B': [24, 3],
      'model.layers.1.mlp.down_proj.lora_A': [3, 24],
      'model.layers.1.mlp.down_proj.lora_B': [16, 3],
    });
  });
});

describe('a model with fused modules', () => {
  const PHI3 = { ...TINY_LLAMA, family: 'phi3' } as const;

  it('is adapted in those when all of their parts are asked for, and says so in its PEFT folder', () => {
    const layout = { ...LAYOUT, targets: [...TARGET_MODULES] };
    const own = ['qkv_proj', 'o_proj', 'gate_up_proj', 'down_proj'];
    const shapes = factorShapes(PHI3, layout);
    expect(shapes).toEqual(factorShapes(PHI3, { ...LAYOUT, targets: own }));
    expect(shapes.get('model.layers.1.self_attn.qkv_proj.lora_B')).toEqual([32, 4]);
    const folder = temporaryFolder();
    const adapter = initialAdapter(PHI3, layout, 1);
    writeAdapter(folder, adapter, 'models/base');
    expect(readAdapter(folder, PHI3)).toEqual({ layout: { ...layout, targets: own }, factors: adapter.factors });
  });

  it('cannot be adapted in a part of one', () => {
    expect(() => factorShapes(PHI3, { ...LAYOUT, targets: ['q_proj', 'o_proj'] })).toThrow(
      "a phi3 model has no module 'q_proj' to adapt by itself; its own are qkv_proj, o_proj, gate_up_proj, down_proj",
    );
    expect(() => factorShapes(TINY_LLAMA, { ...LAYOUT, targets: ['qkv_proj'] })).toThrow("no module 'qkv_proj'");
  });
});

describe('a PEFT folder', () => {
  it('comes back as it was written', () => {
    expect(readAdapter(written(), TINY_LLAMA)).toEqual(initialAdapter(TINY_LLAMA, LAYOUT, 1));
  });

  it('has PEFT’s names and fields', () => {
    const folder = written();
    expect([...readTensors(join(folder, 'adapter_model.safetensors')).keys()].toSorted()).toEqual([
      'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight',
      'base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight',
      'base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight',
      'base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight',
      'base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight',
      'base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight',
      'base_model.model.model.layers.1.self_attn.v_proj.lora_A.weight',
      'base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight',
    ]);
    expect(JSON.parse(readFileSync(join(folder, 'adapter_config.json'), 'utf8'))).toEqual({
      peft_type: 'LORA',
      task_type: 'CAUSAL_LM',
      base_model_name_or_path: 'models/base',
      revision: null,
      r: 4,
      lora_alpha: 8,
      lora_dropout: 0,
      target_modules: ['q_proj', 'v_proj'],
      bias: 'none',
      fan_in_fan_out: false,
      inference_mode: true,
    });
  });

  /** `UserError: message` of reading a folder for a model. */
  function refusal(folder: string, config = TINY_LLAMA): string {
    try {
      readAdapter(folder, config);
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return 'read';
  }
  const withConfig = (change: object): string => {
    const folder = written();
    const file = join(folder, 'adapter_config.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }));
    return folder;
  };

  it.each([
    [{ peft_type: 'IA3' }, 'peft_type'],
    [{ r: 0 }, 'r'],
    [{ r: '4' }, 'r'],
    [{ lora_alpha: -1 }, 'lora_alpha'],
    [{ target_modules: [] }, 'target_modules'],
    [{ target_modules: 3 }, 'target_modules'],
    [{ target_modules: ['lm_head'] }, "target_modules: 'lm_head' is not one of q_proj"],
    [{ use_dora: true }, 'use_dora'],
    [{ use_rslora: 'yes' }, 'use_rslora'],
    [{ init_lora_weights: 'pissa' }, 'init_lora_weights'],
    [{ init_lora_weights: 'olora' }, 'init_lora_weights'],
    [{ alora_invocation_tokens: [1, 2] }, 'alora_invocation_tokens'],
    [{ layer_replication: [[0, 1]] }, 'layer_replication'],
    [{ a_setting_to_come: 'on' }, 'a_setting_to_come'],
    [{ bias: 'all' }, 'bias'],
    [{ r: 1e12 }, 'r'],
    [{ alpha_pattern: { q_proj: 0 } }, 'alpha_pattern'],
    [{ rank_pattern: { '(?<=q)_proj': 4 } }, 'rank_pattern: the pattern "(?<=q)_proj" is not supported'],
    [{ target_modules: '(q_proj' }, 'target_modules: "(q_proj" is no pattern'],
    [{ target_modules: 'nothing' }, 'target_modules: "nothing" names none of q_proj, k_proj'],
  ])('with %j is refused, file and key named', (change, key) => {
    expect(refusal(withConfig(change))).toMatch(/^UserError: .*adapter_config\.json: /);
    expect(refusal(withConfig(change))).toContain(`adapter_config.json: ${key}`);
  });

  it('is read with the settings that every file of PEFT has', () => {
    const off = {
      alpha_pattern: {},
      rank_pattern: {},
      use_dora: false,
      alora_invocation_tokens: null,
      corda_config: null,
    };
    const others = {
      peft_version: '0.21.2',
      megatron_core: 'megatron.core',
      qalora_group_size: 16,
      auto_mapping: null,
    };
    expect(refusal(withConfig({ ...off, ...others, init_lora_weights: true }))).toBe('read');
  });

  it('with use_rslora is scaled by α / √r', () => {
    const { layout } = readAdapter(withConfig({ use_rslora: true, lora_alpha: 6, r: 4 }), TINY_LLAMA);
    // α / r = 12 / 4 = 6 / √4
    expect(layout).toMatchObject({ rank: 4, alpha: 12 });
  });

  it.each(['all-linear', '.*_proj', ['self_attn.q_proj', 'self_attn.v_proj']])(
    'that names its modules by %j has those whose factors it holds',
    (target_modules) => {
      const { layout, factors } = readAdapter(withConfig({ target_modules }), TINY_LLAMA);
      expect(layout.targets).toEqual(['q_proj', 'v_proj']);
      const excluding = { target_modules: ['q_proj', 'v_proj', 'o_proj'], exclude_modules: ['o_proj'] };
      expect(readAdapter(withConfig(excluding), TINY_LLAMA).layout.targets).toEqual(['q_proj', 'v_proj']);
      expect(factors).toEqual(readAdapter(written(), TINY_LLAMA).factors);
    },
  );

  it('gives modules ranks and scales of their own, by the first pattern that matches the end of a name', () => {
    const modules = {
      'model.layers.0.self_attn.q_proj': { rank: 2, alpha: 6 },
      'model.layers.0.self_attn.v_proj': { rank: 4, alpha: 8 },
      'model.layers.1.self_attn.v_proj': { rank: 3, alpha: 8 },
    };
    const layout: AdapterLayout = { ...LAYOUT, modules };
    const folder = temporaryFolder();
    const adapter = initialAdapter(TINY_LLAMA, layout, 1);
    writeAdapter(folder, adapter, 'models/base');
    expect(readAdapter(folder, TINY_LLAMA)).toEqual(adapter);
    expect([...adapter.factors].map(([name, { shape }]) => [name.slice('model.layers.'.length), shape])).toEqual([
      ['0.self_attn.q_proj.lora_A', [2, 16]],
      ['0.self_attn.q_proj.lora_B', [16, 2]],
      ['0.self_attn.v_proj.lora_A', [4, 16]],
      ['0.self_attn.v_proj.lora_B', [8, 4]],
      ['1.self_attn.v_proj.lora_A', [3, 16]],
      ['1.self_attn.v_proj.lora_B', [8, 3]],
    ]);
    const file = join(folder, 'adapter_config.json');
    const named = JSON.parse(readFileSync(file, 'utf8')) as object;
    const patterns = {
      target_modules: '.*layers\\.(0\\..*q_proj|.*v_proj)',
      rank_pattern: { 'q_proj|x': 2, '1.*v_proj': 3 },
      alpha_pattern: { q_proj: 6, '.*proj': 8 },
    };
    writeFileSync(file, JSON.stringify({ ...named, ...patterns }));
    expect(readAdapter(folder, TINY_LLAMA)).toEqual(adapter);
    // α of √r: 6 · √2 / 2 = 6 / √2
    writeFileSync(file, JSON.stringify({ ...named, ...patterns, use_rslora: true }));
    expect(readAdapter(folder, TINY_LLAMA).layout.modules).toMatchObject({
      'model.layers.0.self_attn.q_proj': { rank: 2, alpha: 6 * Math.SQRT2 },
    });
    writeFileSync(file, JSON.stringify({ ...named, ...patterns, layers_to_transform: 1 }));
    expect(refusal(folder)).toContain("holds 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'");
  });

  it('without a file, or with one that is broken, is refused', () => {
    const folder = written();
    const file = join(folder, 'adapter_model.safetensors');
    writeFileSync(file, readFileSync(file).subarray(0, 900));
    expect(refusal(folder)).toMatch(/^UserError: .*adapter_model\.safetensors is not a usable safetensors file: /);
    rmSync(file);
    expect(refusal(folder)).toBe(`UserError: ${file} cannot be read (ENOENT)`);
    writeFileSync(join(folder, 'adapter_config.json'), '{');
    expect(refusal(folder)).toMatch(/^UserError: .*adapter_config\.json cannot be read as JSON: /);
    rmSync(join(folder, 'adapter_config.json'));
    expect(refusal(folder)).toMatch(/^UserError: .*adapter_config\.json cannot be read as JSON: ENOENT/);
  });

  it('of another model is refused', () => {
    const folder = written();
    expect(refusal(folder, { ...TINY_LLAMA, layers: 3 })).toContain(
      "has no tensor 'base_model.model.model.layers.2.self_attn.q_proj.lora_A.weight': the adapter belongs to another model",
    );
    expect(refusal(folder, { ...TINY_LLAMA, width: 32 })).toContain(
      "'model.layers.0.self_attn.q_proj.lora_A' has shape [4,16], the model calls for [4,32]",
    );
    const more = readTensors(join(folder, 'adapter_model.safetensors'));
    more.set('base_model.model.lm_head.lora_A.weight', { shape: [1], data: new Float32Array(1) });
    writeTensors(join(folder, 'adapter_model.safetensors'), more);
    expect(refusal(folder)).toContain(
      "holds 'base_model.model.lm_head.lora_A.weight', which adapter_config.json does not call for",
    );
  });
});
