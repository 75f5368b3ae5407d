import { expect, it } from 'vitest';
import { SpecialTokens } from './special-tokens.js';

const special = new SpecialTokens();
const afterPrompt = (text: string, prompt: string): string | null => special.afterPrompt(text, prompt);

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

it('does not begin with the white space that ends the prompt, and keeps its own', () => {
  expect(afterPrompt('<s> Write a task:\ndef f', 'Write a task:\n')).toBe('def f');
  expect(afterPrompt('<s> Write a task:\n\n  def f', 'Write a task:\n')).toBe('\n  def f');
  expect(afterPrompt('<s> Write a task:\n\n  def f', 'Write a task:\n\n')).toBe('  def f');
  expect(afterPrompt('<s> # input\n', '# input\n')).toBe('');
  // A space that a decoder has put before the newline, and a newline that it has dropped.
  expect(afterPrompt('<s> Write a task: \ndef f', 'Write a task:\n')).toBe('def f');
  expect(afterPrompt('<s> Write a task:def f', 'Write a task:\n')).toBe('def f');
});

it('comes after any number of special tokens and the prompt’s own', () => {
  const padding = '<|endoftext|>'.repeat(500);
  expect(afterPrompt(`${padding}<|im_start|>user\nhi<|im_end|>\ndef f`, '<|im_start|>user\nhi<|im_end|>\n')).toBe(
    'def f',
  );
  expect(afterPrompt('<pad> <pad> <bos> # input\ndef f', '# input\n')).toBe('def f');
  expect(afterPrompt('<unk><unk><s>hi def f', '<s>hi ')).toBe('def f');
  expect(afterPrompt('<pad><bos>\ndef f', '')).toBe('\ndef f');
  expect(afterPrompt('<pad><bos>hi', '<s>hi')).toBeNull();
  expect(afterPrompt('hi', '<s>hi')).toBeNull();
});

it('ends before special tokens, so that a closing fence closes', () => {
  expect(special.withoutEnd('```output\n1\n```<|im_end|>')).toBe('```output\n1\n```');
  expect(special.withoutEnd('x\n</s><|endoftext|>\n<pad><pad> ')).toBe('x\n');
  expect(special.withoutEnd("f('<|im_end|>')\n")).toBe("f('<|im_end|>')\n");
  expect(special.withoutEnd('<eos>')).toBe('');
});

it.each([
  '<｜end▁of▁sentence｜>',
  '<|EOT|>',
  '<|eot_id|>',
  '<EOT>',
  '<end_of_utterance>',
  '<end_of_turn>',
  '[EOS]',
  '[PAD]',
  '<unk>',
  '</s>',
])('%s ends it', (end) => {
  expect(special.withoutEnd(`\`\`\`${end}${end}`)).toBe('```');
});

it('leaves what stands between those at both ends', () => {
  expect(special.withoutEnds('<pad><s> [1, 1]</s><pad>')).toBe(' [1, 1]');
  expect(special.withoutEnds("'<s>'")).toBe("'<s>'");
  expect(special.withoutEnds('<s></s>')).toBe('');
  expect(special.withoutEnds('[1]\n')).toBe('[1]\n');
});

it('is told of the special tokens of a tokenizer of one’s own', () => {
  const own = new SpecialTokens([
    ' (end) ',
    '.*',
    'END OF A TASK, WHICH IS A TOKEN LONGER THAN THE USUAL ONES OF ALL FAMILIES',
  ]);
  const long = 'END OF A TASK, WHICH IS A TOKEN LONGER THAN THE USUAL ONES OF ALL FAMILIES';
  expect(own.withoutEnd(`\`\`\`(end) ${long}\n.*<eos>`)).toBe('```');
  expect(own.withoutEnd('x end')).toBe('x end');
  expect(own.afterPrompt('(end)(end)<s>hi\nx', 'hi\n')).toBe('x');
  expect(special.withoutEnd('```(end)')).toBe('```(end)');
  expect(new SpecialTokens(['', ' ']).withoutEnd('x ')).toBe('x ');
});

it('is found in time that grows with the text', () => {
  const started = performance.now();
  special.withoutEnd('<pad> '.repeat(200_000));
  expect(afterPrompt('<|a|>'.repeat(100_000), `${'<|a|>'.repeat(99_000)}x`)).toBeNull();
  expect(afterPrompt(`${'<pad>'.repeat(200_000)}hi\nx`, 'hi\n')).toBe('x');
  afterPrompt(' '.repeat(1_000_000), ' '.repeat(500_000));
  afterPrompt(`<s>${' '.repeat(500_000)}`, '\n'.repeat(500_000));
  expect(performance.now() - started).toBeLessThan(3000);
});
