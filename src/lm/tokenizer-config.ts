/** What a checkpoint says of its tokenizer beside `tokenizer.json`: the tokens that it calls special, and its settings. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseFields, readJsonFile } from './json-file.js';
import { ID_RULE, isTokenId } from './tokenizer-vocabulary.js';

export const NAMED_TOKENS = [
  'bos_token',
  'eos_token',
  'unk_token',
  'sep_token',
  'pad_token',
  'cls_token',
  'mask_token',
] as const;
export type NamedToken = (typeof NAMED_TOKENS)[number];

/** A token is named by its text, or by all that is known of it. */
const tokenName = z.union(
  [z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)],
  'is not the text of a token',
);
const names = z.object(
  Object.fromEntries(NAMED_TOKENS.map((name) => [name, tokenName.nullish()])) as Record<
    NamedToken,
    z.ZodOptional<z.ZodNullable<typeof tokenName>>
  >,
);
const moreNames = z.union([z.array(tokenName), z.record(z.string(), tokenName)], 'is no list of tokens').nullish();
const template = z.looseObject({ name: z.string(), template: z.string() });

const settingsSchema = z.looseObject({
  ...names.shape,
  additional_special_tokens: moreNames,
  extra_special_tokens: moreNames,
  added_tokens_decoder: z
    .record(
      z.string().refine((id) => /^\d+$/.test(id) && isTokenId(Number(id)), ID_RULE),
      z.looseObject({ content: z.string(), special: z.boolean().default(false) }),
    )
    .nullish(),
  chat_template: z.union([z.string(), z.array(template)], 'is neither a template nor a list of named ones').nullish(),
  clean_up_tokenization_spaces: z.boolean().nullish(),
});
const mapSchema = z.looseObject({
  ...names.shape,
  additional_special_tokens: moreNames,
  extra_special_tokens: moreNames,
});

export interface TokenizerConfig {
  /** `tokenizer_config.json`. */
  readonly settings: z.output<typeof settingsSchema>;
  readonly named: Readonly<Partial<Record<NamedToken, string>>>;
  /** Special tokens without a part of their own. */
  readonly others: readonly string[];
  /** Tokens by id, as `tokenizer_config.json` repeats them. */
  readonly listed: readonly { readonly id: number; readonly content: string; readonly special: boolean }[];
}

/** What to say of a file of the tokenizer's that is not there. */
export const TOKENIZER_ABSENT = "a checkpoint needs its tokenizer's files";

const CONFIG = 'tokenizer_config.json';
const MAP = 'special_tokens_map.json';
/** Of older checkpoints: tokens that were added, by text. */
const ADDED = 'added_tokens.json';
const addedSchema = z.record(z.string(), z.unknown().refine(isTokenId, ID_RULE));

/**
 * Read `tokenizer_config.json` and, where there is one, `special_tokens_map.json`. Where both name a token, the map is right in
 * checkpoints whose configuration does not list its added tokens, as transformers has it; else the configuration.
 * @throws UserError naming the file that is missing or malformed
 */
export function readTokenizerConfig(folder: string): TokenizerConfig {
  const file = join(folder, CONFIG);
  const settings = parseFields(settingsSchema, readJsonFile(file, TOKENIZER_ABSENT), file);
  const mapFile = join(folder, MAP);
  const map = existsSync(mapFile) ? parseFields(mapSchema, readJsonFile(mapFile, 'fetch it again'), mapFile) : {};
  const ranked = settings.added_tokens_decoder ? [map, settings] : [settings, map];
  const named = Object.fromEntries(
    NAMED_TOKENS.flatMap((name) => {
      const text = ranked.map((one) => one[name]).findLast((one) => Boolean(one));
      return text ? [[name, text] as const] : [];
    }),
  );
  const oldFile = join(folder, ADDED);
  const old =
    existsSync(oldFile) && !settings.added_tokens_decoder
      ? parseFields(addedSchema, readJsonFile(oldFile, 'fetch it again'), oldFile)
      : {};
  const lists = [settings, map].flatMap((one) => [one.additional_special_tokens, one.extra_special_tokens]);
  const others = [...new Set(lists.flatMap((list) => Object.values(list ?? {})))];
  const isSpecial = new Set([...Object.values(named), ...others]);
  return {
    settings,
    named,
    others,
    listed: [
      ...Object.entries(old).map(([content, id]) => ({ id, content, special: isSpecial.has(content) })),
      ...Object.entries(settings.added_tokens_decoder ?? {}).map(([id, { content, special }]) => ({
        id: Number(id),
        content,
        special,
      })),
    ],
  };
}
