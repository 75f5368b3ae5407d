/** Tokens that end what a model writes, as `generation_config.json` and `config.json` list them: an instructed model often has several. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../errors.js';

const token = z.int().nonnegative();
const schema = z.looseObject({ eos_token_id: z.union([token, z.array(token)]).nullish() });

/** Both files' `eos_token_id`s, the generation's first; a file that is absent lists none. @throws UserError for one that is malformed. */
export function readEndTokens(folder: string): number[] {
  const listed = ['generation_config.json', 'config.json'].flatMap((name) => {
    const file = join(folder, name);
    if (!existsSync(file)) return [];
    let json: unknown;
    try {
      json = JSON.parse(readFileSync(file, 'utf8'));
    } catch (cause) {
      throw new UserError(`${file} is not valid JSON: ${(cause as Error).message}`, { cause });
    }
    const parsed = schema.safeParse(json);
    if (!parsed.success)
      throw new UserError(
        `${file}: eos_token_id: ${parsed.error.issues[0]!.message}; give a token id or a list of them`,
      );
    return parsed.data.eos_token_id ?? [];
  });
  return [...new Set(listed)];
}
