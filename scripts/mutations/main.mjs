/**
 * Whether the tests would notice: every reward, gate, advantage, credit, loss term and interval is changed on purpose, one change at a time,
 * and the tests named for it must fail. Works on a copy of the sources; needs no build.
 *   npm run mutations                      all of them
 *   npm run mutations -- reward/ student   those of files whose path holds one of the words
 * Exit code 1 when a change survives, or when the text that it changes is no longer there exactly once.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createVitest } from 'vitest/node';
import { GRAPHS } from './graphs.mjs';
import { METRICS } from './metrics.mjs';
import { PIPELINE } from './pipeline.mjs';
import { PROBES } from './probes.mjs';
import { REWARDS } from './rewards.mjs';
import { SUPERVISED } from './supervised.mjs';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = ['src', 'tests', 'pipelines', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
const LINKED = ['node_modules', 'data', 'probes', 'dist'];

const words = process.argv.slice(2);
const chosen = [...REWARDS, ...METRICS, ...PROBES, ...PIPELINE, ...GRAPHS, ...SUPERVISED].filter(
  ({ file }) => words.length === 0 || words.some((word) => file.includes(word)),
);

const root = mkdtempSync(join(tmpdir(), 'propel-mutations-'));
process.on('exit', () => rmSync(root, { recursive: true, force: true }));
for (const entry of COPIED) cpSync(join(PACKAGE, entry), join(root, entry), { recursive: true });
for (const entry of LINKED) symlinkSync(join(PACKAGE, entry), join(root, entry));
process.chdir(root);

const vitest = await createVitest('test', { root, watch: false, bail: 1, reporters: [{}], maxWorkers: 1 });

/** Run test files. @returns the names of tests that failed, the files where there is none to blame */
async function failures(tests, pattern) {
  if (pattern === undefined) vitest.resetGlobalTestNamePattern();
  else vitest.setGlobalTestNamePattern(pattern);
  const specifications = await vitest.globTestSpecifications(tests);
  if (specifications.length !== tests.length) throw new Error(`not all of ${tests.join(', ')} are there`);
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const asked = new Set(specifications.map(({ moduleId }) => moduleId));
  // What an earlier call found stays in the result.
  const failed = testModules
    .filter(({ moduleId }) => asked.has(moduleId))
    .flatMap((module) => {
      const named = [...module.children.allTests('failed')].map(({ fullName }) => fullName);
      return named.length === 0 && !module.ok() ? [module.relativeModuleId] : named;
    });
  return [...failed, ...unhandledErrors.map(String)];
}

function write(file, text) {
  writeFileSync(join(root, file), text);
  vitest.invalidateFile(join(root, file));
}

const tallies = { killed: 0, survived: 0, stale: 0 };
function tell(verdict, file, [find, replace], detail = '') {
  tallies[verdict] += 1;
  console.log(`${verdict.padEnd(8)} ${file}: ${oneLine(find)}  →  ${oneLine(replace)}${detail && `   (${detail})`}`);
}
const oneLine = (text) => text.trim().replaceAll(/\s+/g, ' ') || '(nothing)';

for (const { file, tests, pattern, changes } of chosen) {
  const source = readFileSync(join(root, file), 'utf8');
  const failing = await failures(tests, pattern);
  if (failing.length > 0) throw new Error(`${file}: its tests fail without a change: ${failing.join('; ')}`);
  for (const change of changes) {
    const [find, replace] = change;
    if (source.split(find).length !== 2) {
      tell('stale', file, change, `found ${source.split(find).length - 1} times`);
      continue;
    }
    write(
      file,
      source.replace(find, () => replace),
    );
    const [first] = await failures(tests, pattern);
    tell(first === undefined ? 'survived' : 'killed', file, change, first);
    write(file, source);
  }
}
await vitest.close();
console.log(`${tallies.killed} killed, ${tallies.survived} survived, ${tallies.stale} no longer apply`);
process.exitCode = tallies.survived + tallies.stale === 0 ? 0 : 1;
