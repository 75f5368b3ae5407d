/** Small tokenizers of the kinds that people's models have, as folders of files, for tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './tiny-checkpoint.js';

export const CONTROL = ['<unk>', '<s>', '</s>'] as const;

const LETTERS = [...'▁<>/().",=\nabcdefghijklmnopqrstuvwxyz'];

export const added = (id: number, content: string, more: object = {}): object => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
  ...more,
});

/** A byte-pair encoding of single letters with the control tokens 0, 1 and 2; a letter's id follows from its place. */
export function letterTokenizer(more: object = {}, model: object = {}): Record<string, unknown> {
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: CONTROL.map((text, id) => added(id, text)),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      unk_token: '<unk>',
      fuse_unk: true,
      byte_fallback: false,
      vocab: Object.fromEntries([...CONTROL, ...LETTERS].map((text, id) => [text, id])),
      merges: [],
      ...model,
    },
    ...more,
  };
}

/** The ids of letters in a `letterTokenizer`. */
export function letterIds(letters: string): number[] {
  return [...letters].map((letter) => CONTROL.length + LETTERS.indexOf(letter));
}

/** SentencePiece as converted by the tokenizers library: a space before every text, and taken off again. */
export const PREPENDED = {
  normalizer: {
    type: 'Sequence',
    normalizers: [
      { type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    ],
  },
  decoder: {
    type: 'Sequence',
    decoders: [
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ],
  },
};

/** The same by a pre-tokenizer, before the first piece or before every piece between control tokens. */
export const metaspace = (prepend_scheme: 'first' | 'always'): object => {
  const space = { type: 'Metaspace', replacement: '▁', prepend_scheme, split: false };
  return { pre_tokenizer: space, decoder: space };
};

export const NAMES = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  bos_token: '<s>',
  eos_token: '</s>',
  unk_token: '<unk>',
};

/** A folder of a tokenizer's files. */
export function tokenizerFolder(
  tokenizer: unknown,
  config: unknown = NAMES,
  others: Readonly<Record<string, unknown>> = {},
): string {
  const folder = temporaryFolder();
  const files = { 'tokenizer.json': tokenizer, 'tokenizer_config.json': config, ...others };
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}
