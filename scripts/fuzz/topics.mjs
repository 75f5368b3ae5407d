// Files of topic rules.
import { readFileSync } from 'node:fs';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readTopicRules } from '../../dist/domain/azr/topics.js';

const folder = mkdtempSync(join(tmpdir(), 'propel-fuzz-topics-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

export const parsers = [
  {
    name: 'topic rules',
    seeds: ['data/topics/code-1.json', 'data/topics/code-2.json'].map((file) =>
      readFileSync(new URL(`../../${file}`, import.meta.url)),
    ),
    hostile: ['', 'null', '[]', '{"rules": {}}', '['.repeat(100_000)],
    parse(bytes) {
      const path = join(folder, 'code-2.json');
      writeFileSync(path, bytes);
      readTopicRules(path);
    },
  },
];
