import { expect, it } from 'vitest';
import { afterPrompt, withoutEndTokens } from './completion.js';

it('is what follows the prompt', () => {
  expect(afterPrompt('ab', 'a')).toBe('b');
  expect(afterPrompt('ab', '')).toBe('ab');
  expect(afterPrompt('a', 'a')).toBe('');
  expect(afterPrompt('ab', 'b')).toBeNull();
  expect(afterPrompt('', 'a')).toBeNull();
});

it('is found where a decoder has changed the white space, or begun with special tokens', () => {
  expect(afterPrompt('<s> Write a\ntask:def f', 'Write a task:')).toBe('def f');
  expect(afterPrompt('<|begin_of_text|><|im_start|>user\nhi<|im_end|>\n x', '<|im_start|>user\n hi<|im_end|>')).toBe(
    '\n x',
  );
  expect(afterPrompt('<|a|>b', 'c')).toBeNull();
});

it('ends before special tokens, so that a closing fence closes', () => {
  expect(withoutEndTokens('```output\n1\n```<|im_end|>')).toBe('```output\n1\n```');
  expect(withoutEndTokens('x\n</s><|endoftext|>\n<pad><pad> ')).toBe('x\n');
  expect(withoutEndTokens("f('<|im_end|>')\n")).toBe("f('<|im_end|>')\n");
  expect(withoutEndTokens('<eos>')).toBe('');
});

it('is found in time that grows with the text', () => {
  const started = performance.now();
  withoutEndTokens('<pad> '.repeat(200_000));
  afterPrompt('<|a|>'.repeat(100_000), `${'<|a|>'.repeat(99_000)}x`);
  afterPrompt(' '.repeat(1_000_000), ' '.repeat(500_000));
  expect(performance.now() - started).toBeLessThan(3000);
});
