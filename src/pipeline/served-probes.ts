/** The probes of a reward: each once, and trained for the band and on the tasks that the configuration names. */
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { UserError } from '../errors.js';
import { doubtsOf, readProbeCard } from '../probe/probe-file.js';
import type { ProbeCard } from '../probe/probe-file.js';
import type { Config } from './config.js';
import { findFile, packageRoot } from './paths.js';

export interface ServedProbe {
  readonly path: string;
  /** The card's, or where several have one name the file's as it was given. */
  readonly name: string;
}

export interface ServedProbes {
  readonly probes: readonly ServedProbe[];
  /** What cannot be told of a probe, a line each. */
  readonly warnings: readonly string[];
}

const WEIGHTS = '.safetensors';

/** Of a probe by its file, its card, or the name that both have. @throws UserError when it is missing, or a folder of probes */
function probePath(file: string): string {
  const stem = file.replace(/\.(safetensors|json)$/, '');
  const folder = [resolve(file), resolve(packageRoot(), file)].find(
    (path) => existsSync(path) && statSync(path).isDirectory(),
  );
  if (folder === undefined) return findFile(`${stem}${WEIGHTS}`, '--probe');
  const names = readdirSync(folder).filter((name) => name.endsWith(WEIGHTS));
  const held =
    names.length === 0 ? 'without a probe' : `of probes: ${names.map((name) => basename(name, WEIGHTS)).join(', ')}`;
  throw new UserError(
    `--probe ${file} is a folder ${held}; give one of its probes, such as ${join(file, basename(names[0] ?? 'probe-0', WEIGHTS))}`,
  );
}

/** @throws UserError when a probe is missing, given twice, or was trained for something else */
export function findProbes(files: readonly string[], config: Pick<Config, 'band' | 'domain'>): ServedProbes {
  if (files.length === 0) throw new UserError('--probe: give at least one probe file');
  const probes = files.map((file) => {
    const path = probePath(file);
    const { weightsSha256, ...card } = readProbeCard(path);
    return { file, path, real: realpathSync(path), weightsSha256, card };
  });
  for (const [i, { file, real, weightsSha256 }] of probes.entries()) {
    const first = probes.findIndex((other) => other.real === real || other.weightsSha256 === weightsSha256);
    if (first === i) continue;
    const other = probes[first]!.file;
    throw new UserError(
      `--probe ${file} is given twice${other === file ? '' : `, first as ${other}`}; give each probe once`,
    );
  }
  for (const { file, card } of probes) requireFor(file, card, config);
  const names = probes.map(({ card }) => card.name);
  const silent = probes.filter(({ card }) => card.domain === undefined);
  return {
    probes: probes.map(({ file, path, card: { name } }) => {
      const isAlone = names.filter((other) => other === name).length === 1;
      return { path, name: isAlone ? name : file };
    }),
    warnings: [
      ...silent.map(
        ({ file }) =>
          `the card of --probe ${file} does not say what tasks it was trained on: see that they were ${described(config.domain)}`,
      ),
      // By its figures, as cards of earlier versions hold no warnings.
      ...probes.flatMap(({ file, card }) => doubtsOf(card).map(({ text }) => `--probe ${file} ${text}`)),
    ],
  };
}

function requireFor(file: string, { k, band, domain }: ProbeCard, config: Pick<Config, 'band' | 'domain'>): void {
  const { min, max, of } = config.band;
  if (band.min !== min || band.max !== max || k !== of) {
    throw new UserError(
      `--probe ${file} was trained for ${band.min} to ${band.max} passes of ${k}, band is ${min} to ${max} of ${of}: ` +
        `give a probe of that band, or set band={min: ${band.min}, max: ${band.max}, of: ${k}}`,
    );
  }
  if (domain === undefined) return;
  const isSame =
    domain.notation === config.domain.notation && config.domain.types.every((type) => domain.types.includes(type));
  if (isSame) return;
  throw new UserError(
    `--probe ${file} was trained on ${described(domain)}, the configuration has ${described(config.domain)}: ` +
      `give a probe trained on those, or set domain.types=[${domain.types.join(', ')}] and domain.notation=${domain.notation}`,
  );
}

function described({ types, notation }: { readonly types: readonly string[]; readonly notation: string }): string {
  return `${types.join(', ')} in ${notation} notation`;
}
