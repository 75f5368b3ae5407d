// Small tokenizers of every kind, as people's files have them, and the worst that such a file can hold.

const added = ['<unk>', '<s>', '</s>'].map((content, id) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
}));
const letters = [...'▁<>/().",=\nabdefrstux'];
const vocab = Object.fromEntries([...added.map(({ content }) => content), ...letters].map((text, id) => [text, id]));
const tokenizer = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: added,
  normalizer: {
    type: 'Sequence',
    normalizers: [
      { type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    ],
  },
  pre_tokenizer: null,
  post_processor: {
    type: 'TemplateProcessing',
    single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
    pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
  },
  decoder: {
    type: 'Sequence',
    decoders: [
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'ByteFallback' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ],
  },
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: '<unk>',
    fuse_unk: true,
    byte_fallback: true,
    vocab: { ...vocab, de: 60, ef: 61, def: 62 },
    merges: ['d e', 'de f', 'e f'],
  },
};
const bytes = {
  ...tokenizer,
  normalizer: { type: 'NFC' },
  pre_tokenizer: {
    type: 'Sequence',
    pretokenizers: [
      {
        type: 'Split',
        pattern: { Regex: String.raw`(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+` },
        behavior: 'Isolated',
        invert: false,
      },
      { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    ],
  },
  post_processor: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: false, use_regex: true },
  decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: { ...tokenizer.model, byte_fallback: false, merges: [['d', 'e']] },
};
const unigram = {
  ...tokenizer,
  normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAAA' },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  model: { type: 'Unigram', unk_id: 0, byte_fallback: false, vocab: Object.keys(vocab).map((text, i) => [text, -i]) },
};
const wordPiece = {
  ...tokenizer,
  normalizer: {
    type: 'BertNormalizer',
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: 'BertPreTokenizer' },
  post_processor: { type: 'BertProcessing', sep: ['</s>', 2], cls: ['<s>', 1] },
  decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
  model: {
    type: 'WordPiece',
    unk_token: '<unk>',
    continuing_subword_prefix: '##',
    max_input_chars_per_word: 100,
    vocab,
  },
};
export const tokenizerConfig = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  add_bos_token: true,
  bos_token: '<s>',
  eos_token: {
    __type: 'AddedToken',
    content: '</s>',
    lstrip: false,
    normalized: false,
    rstrip: false,
    single_word: false,
  },
  unk_token: '<unk>',
  pad_token: null,
  additional_special_tokens: ['<s>'],
  added_tokens_decoder: { 2: { content: '</s>', lstrip: false, special: true } },
  clean_up_tokenization_spaces: false,
  model_max_length: 2048,
  chat_template:
    "{% for m in messages %}{{ '<s>' + m['role'] + '\n' + m['content'] | trim + eos_token }}{% endfor %}{% if add_generation_prompt %}{{ 'a' }}{% endif %}",
};
/** A text of brackets within brackets. */
export const deep = (depth, open, close) => `${open.repeat(depth)}1${close.repeat(depth)}`;
/** One of each kind of model. */
export const tokenizers = [tokenizer, bytes, unigram, wordPiece].map((one) => JSON.stringify(one));

/** A tokenizer with something changed. */
const changed = (change, base = tokenizer) => JSON.stringify({ ...base, ...change });
const model = (change) => changed({ model: { ...tokenizer.model, ...change } });
const sequence = (depth, key, innermost) =>
  `${`{"type":"Sequence","${key}":[`.repeat(depth)}${innermost}${']}'.repeat(depth)}`;
const withPart = (name, part) => changed({ [name]: 'PART' }).replace('"PART"', () => part);

export const hostileTokenizers = [
  model({ vocab: { ...vocab, x: 200_000_000 } }),
  model({ vocab: { ...vocab, x: 2 ** 53 } }),
  model({ vocab: { ...vocab, x: -1, y: 1.5 } }),
  model({ vocab: 'x', merges: {} }),
  changed({ added_tokens: [{ id: 4e9, content: '<x>' }] }),
  changed({
    added_tokens: Array.from({ length: 20_000 }, (_, i) => ({ id: 100 + i, content: `<${i}>`, special: true })),
  }),
  changed({ added_tokens: [{ id: 70, content: 'a'.repeat(1e6), special: true }] }),
  model({ merges: Array.from({ length: 50_000 }, () => 'd e') }),
  withPart('normalizer', sequence(20_000, 'normalizers', '{"type":"NFC"}')),
  withPart('pre_tokenizer', sequence(20_000, 'pretokenizers', '{"type":"ByteLevel"}')),
  withPart('post_processor', sequence(20_000, 'processors', '{"type":"ByteLevel"}')),
  withPart('decoder', sequence(20_000, 'decoders', '{"type":"Fuse"}')),
  changed({ pre_tokenizer: { type: 'FixedLength', length: 0 } }),
  changed({ pre_tokenizer: { type: 'Split', pattern: { Regex: String.raw`\p{`.repeat(200_000) } } }),
  changed({ pre_tokenizer: { type: 'Split', pattern: { Regex: '('.repeat(3000) + 'a' + ')'.repeat(3000) } } }),
  changed({ pre_tokenizer: { type: 'Split', pattern: { Regex: '(?:a{1000}){1000}' } } }),
  changed({ pre_tokenizer: { type: 'Split', pattern: { Regex: '['.repeat(5000) } } }),
  changed({ decoder: { type: 'Strip', content: ' ', start: 1e15, stop: 1e15 } }),
  deep(100_000, '[', ']'),
  deep(100_000, '{"model":', '}'),
  JSON.stringify({ model: { type: 'BPE', vocab: JSON.parse('{"__proto__":0,"constructor":1}'), merges: [] } }),
  '',
  'null',
  '\uFEFF{}',
];
