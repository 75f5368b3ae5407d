/** Which tensor of a checkpoint's files is which weight of the decoder, decided as transformers does. */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { inOneLine, UserError } from '../errors.js';
import { weightShapes } from './config.js';
import type { DecoderConfig } from './config.js';
import type { PlacedTensor, WeightFiles } from './weight-files.js';

const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';
/** Of the decoder's weights without its head. A file of the decoder alone lacks it, one of a model around it may have it twice. */
const PREFIX = 'model.';

export interface NamedWeights {
  /** The configuration, its head as the files have it. */
  readonly config: DecoderConfig;
  /** Weight → the name that its file knows it by. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * A head that is to be the embedding but has other numbers in the files is a head of its own, and where only one of the two is there, it is
 * both. @throws UserError when a weight is there twice
 */
export function nameWeights(config: DecoderConfig, files: WeightFiles, listed: string): NamedWeights {
  const known = new Set([...weightShapes(config).keys(), HEAD]);
  const names = new Map<string, string>();
  for (const stored of files.tensors.keys()) {
    const name = weightName(stored, known);
    if (name === null) continue;
    const other = names.get(name);
    if (other !== undefined) {
      throw new UserError(
        `${listed} has '${inOneLine(stored)}' and '${inOneLine(other)}', which are the same weight; keep one`,
      );
    }
    names.set(name, stored);
  }
  const [head, embedding] = [names.get(HEAD), names.get(EMBEDDING)];
  if (!config.tiedHead || head === undefined) return { config, names };
  if (embedding === undefined) return { config, names: new Map([...names, [EMBEDDING, head]]) };
  const [a, b] = [files.tensors.get(head)!, files.tensors.get(embedding)!];
  return { config: sameNumbers(files.folder, a, b) ? config : { ...config, tiedHead: false }, names };
}

function weightName(stored: string, known: ReadonlySet<string>): string | null {
  const without = stored.startsWith(PREFIX) ? stored.slice(PREFIX.length) : null;
  if (without !== null && known.has(without)) return without;
  return [PREFIX + stored, stored].find((name) => known.has(name)) ?? null;
}

const PIECE = 1 << 22;

/** Whether two tensors hold the same bytes. */
function sameNumbers(folder: string, a: PlacedTensor, b: PlacedTensor): boolean {
  if (a.type !== b.type || a.bytes !== b.bytes) return false;
  const [one, other] = [openSync(join(folder, a.file), 'r'), openSync(join(folder, b.file), 'r')];
  const [x, y] = [Buffer.allocUnsafe(Math.min(PIECE, a.bytes)), Buffer.allocUnsafe(Math.min(PIECE, a.bytes))];
  try {
    for (let at = 0; at < a.bytes; at += x.length) {
      const size = Math.min(x.length, a.bytes - at);
      readSync(one, x, 0, size, a.offset + at);
      readSync(other, y, 0, size, b.offset + at);
      if (x.compare(y, 0, size, 0, size) !== 0) return false;
    }
    return true;
  } finally {
    closeSync(one);
    closeSync(other);
  }
}
