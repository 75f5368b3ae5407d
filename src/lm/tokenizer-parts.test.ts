/** Parts of tokenizers against the tokenizers library: a fixture made by `scripts/fixtures/tokenizer_parts.py`. */
import { readFileSync } from 'node:fs';
import { PreTrainedTokenizer } from '@huggingface/transformers';
import { describe, expect, it } from 'vitest';
import { letterTokenizer } from '../../tests/small-tokenizers.js';
import { tokenDecoder } from './token-decoder.js';
import { normalizerPart, preTokenizerPart } from './tokenizer-parts.js';
import type { Part } from './tokenizer-parts.js';
import { unigramModel } from './unigram.js';

const PEER = JSON.parse(readFileSync(new URL('fixtures/tokenizer-parts.json', import.meta.url), 'utf8')) as {
  readonly texts: readonly string[];
  readonly preTokenizers: readonly (readonly [Part, readonly (readonly string[])[]])[];
  readonly normalizers: readonly (readonly [Part, readonly string[]])[];
  readonly unigrams: readonly (readonly [
    vocabulary: readonly (readonly [string, number])[],
    segmented: readonly (readonly [string, readonly string[]])[],
  ])[];
  readonly tokens: readonly (readonly string[])[];
  readonly decoders: readonly (readonly [Part | null, readonly string[]])[];
};

const refuse = (what: string): never => {
  throw new Error(what);
};
/** The library with one part. */
function library(part: object): PreTrainedTokenizer['_tokenizer'] {
  const { _tokenizer: tokenizer } = new PreTrainedTokenizer(letterTokenizer(part), {});
  return tokenizer;
}

describe('a part of a tokenizer does what the tokenizers library does', () => {
  it.each(PEER.preTokenizers)('pre-tokenizer %j', (part, pieces) => {
    const { pre_tokenizer } = library({ pre_tokenizer: preTokenizerPart(part, refuse) });
    const own = PEER.texts.map((text) => pre_tokenizer!.pre_tokenize(text, { section_index: 0 }));
    expect(own).toEqual(pieces);
  });

  it.each(PEER.normalizers)('normalizer %j', (part, texts) => {
    const { normalizer } = library({ normalizer: normalizerPart(part, refuse) });
    expect(PEER.texts.map((text) => normalizer!.normalize(text))).toEqual(texts);
  });

  it.each(PEER.decoders)('decoder %j', (part, texts) => {
    const decode = tokenDecoder(part, refuse);
    expect(PEER.tokens.map((tokens) => decode(tokens).join(''))).toEqual(texts);
  });

  it.each(PEER.unigrams)('unigram model %j, of ways that are as probable the same', (vocabulary, segmented) => {
    const segment = unigramModel(vocabulary, '<unk>');
    // A run of unknown characters is one token, which the library shows as those characters.
    const shown = (run: string): string[] => {
      const unknown = run.match(/x+/g)?.values();
      return segment(run).map((token) => (token === '<unk>' ? unknown!.next().value! : token));
    };
    expect(segmented.map(([run]) => shown(run))).toEqual(segmented.map(([, tokens]) => tokens));
  });
});
