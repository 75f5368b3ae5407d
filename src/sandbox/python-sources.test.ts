import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SHARED_SOURCES } from './python-sources.js';

test('a container joins the same files in the same order', () => {
  const [, listed] = /^SOURCES = \(([^)]*)\)/m.exec(readFileSync('sandbox/runner/supervisor.py', 'utf8'))!;
  const names = [...listed!.matchAll(/'([\w.]+)'/g)].map(([, name]) => name);
  expect(names).toEqual([...SHARED_SOURCES, 'zygote.py']);
});
