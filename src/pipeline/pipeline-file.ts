/** `pipeline.yaml` of a run folder: the settings that the run was made with, resolved, to be read and to be run again. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { writeFileAtomic } from '../store/files.js';
import type { Config } from './config.js';

/** The settings of a run, or of every seed of a comparison, resolved. */
export const PIPELINE_FILE = 'pipeline.yaml';
const HEADER = '# The settings of the run in this folder, every default filled in.';

/**
 * Write the file, unless its name is taken by one that no run has written.
 * @param source how the settings were given: a file and overrides, as on the command line; undefined when that is not known
 */
export function writePipeline(folder: string, config: Config, source: string | undefined, propel: string): void {
  const path = join(folder, PIPELINE_FILE);
  if (existsSync(path) && !isOurs(path)) return;
  const lines = [
    HEADER,
    `# Written by propel ${propel}${source === undefined ? '' : `, from ${source.replaceAll(/\s+/g, ' ')}`}`,
    `# The same run again: propel run ${path} --out ANOTHER-FOLDER`,
  ];
  writeFileAtomic(path, `${lines.join('\n')}\n${stringify(config)}`);
}

/** The file of that name in a run's folder, if a run has written it. */
export function writtenPipeline(folder: string): string[] {
  const path = join(folder, PIPELINE_FILE);
  return existsSync(path) && isOurs(path) ? [PIPELINE_FILE] : [];
}

function isOurs(path: string): boolean {
  return readFileSync(path, 'utf8').startsWith(HEADER);
}
