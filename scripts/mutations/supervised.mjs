/** Changes of supervised fine-tuning, against PyTorch's numbers, and of where completions end. */
const ENDS = ['tests/text-end.test.ts', 'tests/completion-end.test.ts'];

export const SUPERVISED = [
  {
    file: 'src/rl/supervised.ts',
    tests: ['src/rl/supervised.test.ts'],
    changes: [
      ['Math.min(1, (update + 1) / warmUp)', '1'],
      ['(1 - LAST_SHARE) * 0.5 * (1 + Math.cos((Math.PI * update) / updates))', '(1 - LAST_SHARE)'],
      ['const LAST_SHARE = 0.05', 'const LAST_SHARE = 0.5'],
      ['{ tokens, clip: 1, kl: 0, entropy: 0 }', '{ tokens: documents.length, clip: 1, kl: 0, entropy: 0 }'],
      ['oldLogProbs: null, referenceLogProbs: null', 'referenceLogProbs: null'],
      [
        'surprise -= logProbs.reduce((sum, logProb, i) => sum + logProb * batch.mask[i]!, 0)',
        'surprise -= logProbs.reduce((sum, logProb) => sum + logProb, 0)',
      ],
      ['nats -= logProbs[t]! * batch.mask[t]!', 'nats -= logProbs[t]!'],
      ['losses[document] = ', 'losses[row] = '],
      ["deriveSeed(seed, 'order of documents', pass)", "deriveSeed(seed, 'order of documents', 0)"],
      ['.sort((a, b) => lengths[a]! - lengths[b]! || a - b)', ''],
      ['of shuffled(cut, random)', 'of cut'],
      [
        'prompt, tokens: completion, logProbs: new Float32Array(completion.length), advantage: 1',
        'prompt, tokens: completion, logProbs: new Float32Array(completion.length), advantage: 2',
      ],
    ],
  },
  {
    file: 'src/lm/token-ends.ts',
    tests: ENDS,
    changes: [
      ['if (state === null) return null;', 'if (state === null) continue;'],
      ['to[i] = state;', ''],
      ['for (const id of stops) classOf[id] = stop;', ''],
      ['next[nothing + state] = state', 'next[nothing + state] = BEGUN'],
    ],
  },
  {
    file: 'src/text-end.ts',
    tests: ENDS,
    changes: [
      ['said = border[said - 1]!', 'said = 0'],
      ['bytes[length] === bytes[i] ? length + 1 : 0', '0'],
      ['bytes.subarray(0, at + 1)', 'bytes.subarray(0, at)'],
    ],
  },
  {
    file: 'src/lm/completion-end.ts',
    tests: ENDS,
    changes: [
      ['untilEnd(this.#tokenizer.decode(tokens), this.#texts)', 'this.#tokenizer.decode(tokens)'],
      ['...(end === null ? [] : [end])', ''],
      ['...tokenizer.ends, ...control', '...tokenizer.ends'],
    ],
  },
  {
    file: 'src/lm/rollout-graph.ts',
    tests: ['tests/completion-end.test.ts', 'src/lm/dialects.test.ts'],
    pattern: 'a rollout|a small llama',
    changes: [
      ['body.emitAdd(body.emitGather(classOf, token), state)', 'body.emitGather(classOf, token)'],
      ['g.int64Scalar(BEGUN)', 'g.int64Scalar(ENDED)'],
    ],
  },
  {
    file: 'src/domain/azr/doctest-ends.ts',
    tests: ENDS,
    changes: [
      ['return state === CLOSED ? null : TEXT_START', 'return state >= IN_CALL ? null : TEXT_START'],
      [
        'if (state === RETURNED) return isNamePart(byte) ? IN_BODY : IN_RETURN;',
        'if (state === RETURNED) return IN_RETURN;',
      ],
      ['if (byte === NEWLINE) return null;', ''],
    ],
  },
  {
    file: 'src/pipeline/chat.ts',
    tests: ['tests/chat.test.ts'],
    changes: [["chat === 'auto' && !domain.asksInChat ? 'never' : chat", 'chat']],
  },
];
