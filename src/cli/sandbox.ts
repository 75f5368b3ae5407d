/** `propel sandbox`: the container sandbox's image and containers, and both sandboxes put to the test. */
import { Option, type Command } from 'commander';
import { IMAGE_NAMES } from '../pipeline/open-sandbox.js';
import {
  buildSandboxImage,
  pruneSandbox,
  sandboxStatus,
  testSandboxes,
  type SandboxStatus,
  type SandboxTest,
} from '../pipeline/sandbox.js';
import type { ImageBase, ImageVariant } from '../sandbox/docker/image.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';

const JSON_OPTION = ['--json', 'print one JSON document on standard output'] as const;
const SHOWN = 60;

interface BuildFlags {
  readonly image: ImageVariant;
  readonly base?: ImageBase;
  readonly json?: boolean;
}

export function register(program: Command): void {
  const sandbox = program
    .command('sandbox')
    .description('build, show, test and clear away the container sandbox')
    .addHelpText(
      'after',
      `
The daemon is that of DOCKER_HOST, else of the local socket.

Examples:
  $ propel sandbox build
  $ propel sandbox test --json > outcomes.json
  $ propel sandbox prune`,
    );
  sandbox
    .command('build')
    .description("build the image: from python:3.12-slim where a registry answers, else from Debian's packages")
    .addOption(new Option('--image <variant>', 'plain, or with packages').choices(IMAGE_NAMES).default('plain'))
    .addOption(new Option('--base <base>', 'insist on one').choices(['registry', 'packages']))
    .option(...JSON_OPTION)
    .action(async ({ image, base, json }: BuildFlags) => {
      const built = await buildSandboxImage(image, base, (line) => process.stderr.write(`${line}\n`));
      if (json) printJson(built);
      else printLines([`${built.tag} on ${built.base}`]);
    });
  sandbox
    .command('status')
    .description('show the daemon, the images, and the pools with their containers')
    .option(...JSON_OPTION)
    .action(async ({ json }: { readonly json?: boolean }) => {
      const status = await sandboxStatus();
      if (json) printJson(status);
      else printLines(describeStatus(status));
    });
  sandbox
    .command('test')
    .description('run the conformance and attack suites here, on the embedded and on the container sandbox')
    .addOption(new Option('--only <sandbox>', 'one of them').choices(['wasm', 'docker']))
    .option(...JSON_OPTION)
    .action(async ({ only, json }: { readonly only?: 'wasm' | 'docker'; readonly json?: boolean }) => {
      const test = await testSandboxes(only === undefined ? ['wasm', 'docker'] : [only], createProgress);
      if (json) printJson(test);
      else printLines(describeTest(test));
      if (!test.passed) process.exitCode = 1;
    });
  sandbox
    .command('prune')
    .description(
      'remove containers whose process has ended, and images of other versions; all of them are known by label',
    )
    .option('--all', 'also containers in use, and the images of this version')
    .option(...JSON_OPTION)
    .action(async ({ all, json }: { readonly all?: boolean; readonly json?: boolean }) => {
      const pruned = await pruneSandbox(all ?? false);
      if (json) printJson(pruned);
      else
        printLines([
          `removed ${pruned.containers} containers and ${pruned.images} images, kept ${pruned.kept} containers in use`,
        ]);
    });
}

function describeStatus({ engine, fault, images, containers }: SandboxStatus): string[] {
  if (engine === null)
    return [fault, 'start Docker, or name its socket in DOCKER_HOST; programs run in the embedded sandbox meanwhile'];
  const pools = new Map<string, number>();
  for (const { pid, owner } of containers) {
    const pool =
      owner === 'elsewhere' ? 'another machine' : `process ${pid}${owner === 'gone' ? ', which has ended' : ''}`;
    pools.set(pool, (pools.get(pool) ?? 0) + 1);
  }
  return [
    `engine ${engine}`,
    '',
    ...alignColumns([['image', 'state', 'tag'], ...images.map(({ variant, state, tag }) => [variant, state, tag])]),
    '',
    containers.length === 0 ? 'no containers' : `${containers.length} containers`,
    ...[...pools].map(([pool, size]) => `  ${size} of ${pool}`),
    ...alignColumns(
      containers.map(({ id, variant, state, ageSeconds }) => [
        '',
        id.slice(0, 12),
        variant,
        state,
        `${ageSeconds} s old`,
      ]),
    ),
  ];
}

function describeTest({ sandboxes, notRun, rows }: SandboxTest): string[] {
  const names = sandboxes.map(({ name }) => name);
  const failures = rows.flatMap(({ name, results }) =>
    Object.entries(results).flatMap(([sandbox, { ok, detail }]) => (ok ? [] : [`${sandbox}: ${name}: ${detail}`])),
  );
  const cell = (outcomes: readonly string[] | undefined, ok: boolean | undefined): string => {
    const text = [...new Set(outcomes)].join(', ').replaceAll('\n', ' ');
    return `${ok === false ? 'FAILED ' : ''}${text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`}`;
  };
  return [
    ...sandboxes.map(
      ({ name, versions }) =>
        `${name}: ${Object.entries(versions)
          .map((pair) => pair.join(' '))
          .join(', ')}`,
    ),
    ...Object.entries(notRun).map(([name, why]) => `${name}: not run, ${why}`),
    '',
    ...alignColumns([
      ['suite', 'case', ...names],
      ...rows.map(({ suite, name, results }) => [
        suite,
        name,
        ...names.map((each) => cell(results[each]?.outcomes, results[each]?.ok)),
      ]),
    ]),
    '',
    failures.length === 0 ? `all ${rows.length} cases came out as they must` : `${failures.length} failures`,
    ...failures,
  ];
}
