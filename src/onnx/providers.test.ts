/** The self-test that admits an execution provider, and the choice among providers. */
import { describe, expect, it } from 'vitest';
import { missingLibrary, providersHere } from './availability.js';
import { TYPE_TOLERANCE } from './compute-type.js';
import { Differentiable } from './differentiable.js';
import type { Value } from './graph.js';
import { chooseProvider, fastest } from './providers.js';
import type { ProviderSetting } from './providers.js';
import { testProvider } from './self-test.js';
import type { SelfTest } from './self-test.js';
import type { ExecutionProvider } from './session.js';

describe('testProvider', () => {
  it('passes on cpu, gradients within 1e-5 of float64', async () => {
    const test = await testProvider('cpu');
    expect(test).toMatchObject({ provider: 'cpu', passed: true, detail: 'gradients agree with float64' });
    expect(test.gradientError).toBeLessThan(1e-5);
  });

  it('fails when a gradient is wrong though the loss is right', async () => {
    /** (a + (a − stop(a))) · b has the value of a · b, and twice the gradient with respect to a. */
    class WrongMul extends Differentiable {
      override mul(a: Value, b: Value): Value {
        const twice = super.add(a, super.sub(a, { ...a, requiresGrad: false }));
        return super.mul(twice, b);
      }
    }
    const test = await testProvider('cpu', 'float32', WrongMul);
    expect(test.passed).toBe(false);
    expect(test.gradientError).toBeGreaterThan(TYPE_TOLERANCE.float32);
    expect(test.detail).toMatch(/^gradients differ from float64 by \S+ relative$/);
  });

  it('fails when gradients are not numbers', async () => {
    class NotANumber extends Differentiable {
      override rmsNorm(x: Value, w: Value, epsilon: number): Value {
        return this.mul(super.rmsNorm(x, w, epsilon), this.scalar(Number.NaN));
      }
    }
    const test = await testProvider('cpu', 'float32', NotANumber);
    expect(test.passed).toBe(false);
    expect(test.gradientError).toBeNaN();
  });

  it('says in one line what ONNX Runtime refused', async () => {
    class Unknown extends Differentiable {
      override swiGlu(a: Value): Value {
        return this.op('NoSuchOperator', [a], {}, a.shape);
      }
    }
    const test = await testProvider('cpu', 'float32', Unknown);
    expect(test).toMatchObject({ passed: false, gradientError: null });
    expect(test.detail).toContain('NoSuchOperator');
    expect(test.detail).not.toContain('\n');
  });
});

describe('chooseProvider', () => {
  it('refuses a setting that is none', async () => {
    const choice = chooseProvider('tpu' as ProviderSetting);
    await expect(choice).rejects.toMatchObject({ name: 'UserError', exitCode: 2 });
    await expect(choice).rejects.toThrow(
      "provider 'tpu' is unknown; it is one of auto, cuda, webgpu, coreml, dml, cpu",
    );
  });

  it('tests every provider of the system in turn, takes the first that passes, and keeps why others did not', async () => {
    const { provider, tests } = await chooseProvider('auto');
    expect(tests.map((t) => t.provider)).toEqual(providersHere());
    expect(tests.find((t) => t.passed)!.provider).toBe(provider);
  });

  it('tests the one that is named and no other', async () => {
    const { provider, tests } = await chooseProvider('cpu');
    expect(provider).toBe('cpu');
    expect(tests).toHaveLength(1);
  });

  it('refuses at once a type that the named provider does not compute in', async () => {
    const choice = chooseProvider('cpu', null, { dtype: 'bfloat16', stored: () => 'float32' });
    await expect(choice).rejects.toMatchObject({ name: 'UserError', exitCode: 2 });
    await expect(choice).rejects.toThrow(
      'cpu computes in float32, not in bfloat16: set dtype: auto, or another provider',
    );
  });

  it('passes over the providers that do not compute in the type', async () => {
    const choice = chooseProvider('auto', null, { dtype: 'bfloat16', stored: () => 'float32' });
    if (providersHere().includes('cuda') && !missingLibrary('cuda')) {
      expect(await choice).toMatchObject({ provider: 'cuda', dtype: 'bfloat16' });
      return;
    }
    await expect(choice).rejects.toMatchObject({ name: 'RunError', exitCode: 1 });
    await expect(choice).rejects.toThrow(/cpu: cpu computes in float32, not in bfloat16: .*, or set dtype: auto$/);
  });

  it('says what the products are computed in', async () => {
    expect(await chooseProvider('cpu', null, { dtype: 'auto', stored: () => 'bfloat16' })).toMatchObject({
      dtype: 'float32',
    });
  });

  it.runIf(missingLibrary('cuda'))('says how to install what CUDA needs', async () => {
    const choice = chooseProvider('cuda');
    await expect(choice).rejects.toMatchObject({ name: 'RunError', exitCode: 1 });
    await expect(choice).rejects.toThrow(
      /^no execution provider is usable \(cuda: .*(CUDA libraries|CUDA does not exist)/,
    );
  });

  it.runIf(missingLibrary('webgpu'))('says that there is no adapter where there is no Vulkan', async () => {
    await expect(chooseProvider('webgpu')).rejects.toThrow(/webgpu: no WebGPU adapter found: /);
  });
});

describe('the fastest provider', () => {
  const passed = (provider: ExecutionProvider): SelfTest => ({
    provider,
    passed: true,
    gradientError: 0,
    detail: 'right',
  });
  const lacking: SelfTest = { provider: 'cuda', passed: false, gradientError: null, detail: 'not installed' };

  it('is the one whose step of the model takes least; what failed its self-test is not tried', async () => {
    const milliseconds = { webgpu: 20, cpu: 50 } as const;
    const { provider, tests } = await fastest([lacking, passed('webgpu'), passed('cpu')], (candidate) => {
      const ms = milliseconds[candidate as 'webgpu' | 'cpu'];
      return Promise.resolve({ milliseconds: ms, detail: `${ms} ms` });
    });
    expect(provider).toBe('webgpu');
    expect(tests.map(({ detail }) => detail)).toEqual(['not installed', '20 ms', '50 ms']);
  });

  it('is none that is wrong on the model or cannot run it, however fast', async () => {
    const { provider, tests } = await fastest([passed('cuda'), passed('webgpu'), passed('cpu')], (candidate) => {
      if (candidate === 'cuda') return Promise.reject(new Error('out of memory\nat …'));
      const isCpu = candidate === 'cpu';
      return Promise.resolve({ milliseconds: isCpu ? 50 : null, detail: isCpu ? '50 ms' : 'gradients differ' });
    });
    expect(provider).toBe('cpu');
    expect(tests.map(({ passed: usable, detail }) => [usable, detail])).toEqual([
      [false, 'it cannot run the model: out of memory'],
      [false, 'gradients differ'],
      [true, '50 ms'],
    ]);
  });

  it('is refused when no one is right', async () => {
    const choice = fastest([passed('cpu')], () => Promise.resolve({ milliseconds: null, detail: 'gradients differ' }));
    await expect(choice).rejects.toThrow('no execution provider is usable (cpu: gradients differ)');
  });
});
