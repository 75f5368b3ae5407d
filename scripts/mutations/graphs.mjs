/** Changes of the policy's loss and of the optimiser, against PyTorch's numbers. */
const TESTS = ['src/lm/pytorch.test.ts', 'src/lm/trainer.test.ts'];
/** One family is enough: the loss does not know it. */
const pattern = 'a small llama|a trainer|training an adapter';

export const GRAPHS = [
  {
    file: 'src/lm/update-graph.ts',
    tests: TESTS,
    pattern,
    changes: [
      ['g.min(g.mul(ratio, row.advantages), g.mul(clippedRatio, row.advantages))', 'g.mul(ratio, row.advantages)'],
      [
        'g.min(g.mul(ratio, row.advantages), g.mul(clippedRatio, row.advantages))',
        'g.mul(clippedRatio, row.advantages)',
      ],
      ['g.exp(g.sub(logProb, old))', 'g.exp(g.sub(old, logProb))'],
      ['g.emitSub(one, settings.clip)', 'g.emitSub(one, one)'],
      ['g.emitAdd(one, settings.clip)', 'g.emitAdd(one, one)'],
      ['g.sub(row.reference, logProb)', 'g.sub(logProb, row.reference)'],
      ['g.sub(g.sub(g.exp(q), one), q)', 'g.sub(g.exp(q), one)'],
      [
        'g.sub(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
        'g.sub(g.sub(k3, surrogate), g.mul(entropy, settings.entropy))',
      ],
      [
        'g.sub(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
        'g.add(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
      ],
      [
        'g.sub(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
        'g.sub(g.add(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
      ],
      [
        'g.sub(g.sub(g.mul(k3, settings.kl), surrogate), g.mul(entropy, settings.entropy))',
        'g.sub(g.mul(k3, settings.kl), surrogate)',
      ],
      ['g.emitDiv(row.mask, settings.tokens)', 'row.mask'],
      ['masked(g.emitNeg(q))', 'masked(q)'],
      ['g.emitSumAll(g.emitMul(x, row.mask))', 'g.emitSumAll(x)'],
      ['g.emitWhere(settings.onPolicy, logProb, row.old)', 'g.emitWhere(settings.onPolicy, row.old, logProb)'],
      ['LOG_RATIO_LIMIT = 10', 'LOG_RATIO_LIMIT = 0.01'],
    ],
  },
  {
    file: 'src/lm/adamw-graph.ts',
    tests: TESTS,
    pattern,
    changes: [
      [
        "g.emitUnary('Sqrt', g.emitSumAll(g.emitConcat(squares, 0, squares.length)))",
        'g.emitSumAll(g.emitConcat(squares, 0, squares.length))',
      ],
      ["g.emitBinary('Min', one, g.emitDiv(maxNorm, g.emitAdd(norm, g.scalar(1e-6))))", 'one'],
      [
        "g.emitBinary('Min', one, g.emitDiv(maxNorm, g.emitAdd(norm, g.scalar(1e-6))))",
        'g.emitDiv(maxNorm, g.emitAdd(norm, g.scalar(1e-6)))',
      ],
      ['g.emitMul(m, beta1), g.emitMul(d, g.emitSub(one, beta1))', 'g.emitMul(m, beta1), d'],
      ['g.emitMul(m, beta1), g.emitMul', 'm, g.emitMul'],
      ['g.emitMul(g.emitMul(d, d), g.emitSub(one, beta2))', 'g.emitMul(d, g.emitSub(one, beta2))'],
      ['g.emitMul(v, beta2),', 'v,'],
      ['g.emitMul(v1, correction2)', 'v1'],
      ['g.emitMul(m1, correction1)', 'm1'],
      [
        "g.emitAdd(g.emitUnary('Sqrt', g.emitMul(v1, correction2)), epsilon)",
        "g.emitUnary('Sqrt', g.emitMul(v1, correction2))",
      ],
      ['if (shape.length > 1) step', 'step'],
      ['if (shape.length > 1) step = g.emitAdd(step, g.emitMul(p, decay));', ''],
      ['g.emitMul(step, rate)', 'step'],
      ["result('Sub', p,", "result('Add', p,"],
      [
        'g.emitAdd(g.input(`a.${name}`, shape), g.input(`b.${name}`, shape))',
        'g.emitAdd(g.input(`a.${name}`, shape), g.emitMul(g.input(`b.${name}`, shape), g.scalar(0)))',
      ],
    ],
  },
  {
    file: 'src/lm/trainer.ts',
    tests: TESTS,
    pattern,
    changes: [
      ['batch.oldLogProbs === null)', 'true)'],
      ['this.#step++;', ''],
      ['1 - settings.beta1 ** this.#step', '1 - settings.beta1'],
      ['1 - settings.beta2 ** this.#step', '1 - settings.beta2'],
      ["batch.referenceLogProbs ? value('klSum') : 0", "value('klSum')"],
      ['batch.referenceLogProbs === null && loss.kl !== 0', 'false'],
      ['advantages: given(batch.advantages)', 'advantages: given(null)'],
      ['mask: given(batch.mask)', 'mask: given(new Float32Array(batch.mask.length).fill(1))'],
    ],
  },
  {
    file: 'src/lm/engine.ts',
    tests: ['src/lm/engine.test.ts'],
    changes: [
      ["pooling === 'last' || row.length === 1", "pooling === 'last'"],
      ['1 / (row.length - 1), at + 1, at + row.length', '1 / row.length, at, at + row.length'],
      ['weights[at + row.length - 1] = 1', 'weights[at + time - 1] = 1'],
    ],
  },
  {
    file: 'src/onnx/differentiable.ts',
    tests: ['src/lm/pytorch.test.ts'],
    pattern: 'gemma3|mistral-window|phi3-partial',
    changes: [
      ["this.op('LessOrEqual', [key, last]", "this.op('Less', [key, last]"],
      ['this.emitAdd(bias, this.windowBias(query, t, window))', 'bias'],
      ['Math.sqrt(2 / Math.PI) * 0.044715]', 'Math.sqrt(2 / Math.PI) * 0.04]'],
      ['this.emitScale(square, 3 * cubic)', 'this.emitScale(square, cubic)'],
      ['this.emitConcat([this.#emitRotate(turned, rotary, inverse), rest], 3, whole)', 'x'],
    ],
  },
  {
    file: 'src/lm/decoder.ts',
    tests: ['src/lm/pytorch.test.ts'],
    pattern: 'gemma3',
    changes: [
      ['graph.add(weight(name), shift)', 'weight(name)'],
      ['Math.sqrt(this.config.width)', '1'],
      ['theta: local, scaling: null', 'theta, scaling: null'],
      ["normsAround ? norm(attended, 'post_attention_layernorm') : attended", 'attended'],
      ["normsAround ? norm(fed, 'post_feedforward_layernorm') : fed", 'fed'],
      ['Math.sqrt(headDim / queryScale)', 'Math.sqrt(queryScale / headDim)'],
    ],
  },
  {
    file: 'src/lm/prefix-graph.ts',
    tests: ['src/lm/prefix.test.ts'],
    pattern: 'sees less|gemma3',
    changes: [
      ['toPrefixBias: window === null ? null : toPrefix(window)', 'toPrefixBias: null'],
      ["g.emitAdd(g.emitRange('time'), prefix)", "g.emitRange('time')"],
    ],
  },
  {
    file: 'src/lm/rollout-graph.ts',
    tests: ['src/lm/rollout.test.ts'],
    pattern: 'rollouts of a gemma3',
    changes: [
      ['window === null ? {} : { bias: writtenBiasOf(window) }', '{}'],
      ['promptBiasOf(window)', 'promptBias'],
    ],
  },
  {
    file: 'src/lm/step-rollout.ts',
    tests: ['src/lm/dialects.test.ts'],
    pattern: 'gemma3',
    changes: [
      ['Math.max(0, step - window)', 'Math.max(0, step - window - 1)'],
      ['Math.max(0, length + step - window)', 'Math.max(0, length + step - window - 1)'],
    ],
  },
  {
    file: 'src/lm/gguf/blocks.ts',
    tests: ['src/lm/gguf/blocks.test.ts'],
    changes: [
      ['half(b, at + 2) : -0', 'half(b, at + 2) : 0'],
      ['five ? 16 : 8', '8'],
      ['((b[at + part - 4]! >> 6) << 4), (both >> 4)', '0, (both >> 4)'],
      ['(part & 2 ? 4 : 0)', '(part & 1 ? 4 : 0)'],
    ],
  },
];
