/** Tokens that end what a model writes, as `generation_config.json` and `config.json` list them: an instructed model often has several. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseFields, readJsonFile } from './json-file.js';

const token = z.int().nonnegative();
const schema = z.looseObject({
  eos_token_id: z.union([token, z.array(token)], 'is no token id').nullish(),
});

/** Both files' `eos_token_id`s, the generation's first; a file that is absent lists none. @throws UserError for one that is malformed. */
export function readEndTokens(folder: string): number[] {
  const listed = ['generation_config.json', 'config.json'].flatMap((name) => {
    const file = join(folder, name);
    if (!existsSync(file)) return [];
    const json = readJsonFile(file, 'fetch it again');
    return parseFields(schema, json, file, 'give a token id or a list of them').eos_token_id ?? [];
  });
  return [...new Set(listed)];
}
