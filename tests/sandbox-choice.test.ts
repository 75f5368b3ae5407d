/** Which sandbox a command takes, what it says of that, and how it fails where the one asked for is not there. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MAIN, temporaryFolder } from './propel-process.js';

const NOWHERE = 'unix:///nowhere/docker.sock';
const NO_DAEMON = 'no Docker daemon answers: connect ENOENT /nowhere/docker.sock';

const folder = temporaryFolder();
const file = join(folder, 'one.jsonl');
writeFileSync(file, JSON.stringify({ snippet: 'def f(x):\n    return x', input: '1', output: '1', imports: [] }));

function withoutDaemon(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, DOCKER_HOST: NOWHERE };
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

describe('--sandbox', () => {
  it('auto takes the embedded sandbox where no daemon answers, and says why', () => {
    const { code, stdout, stderr } = withoutDaemon('check', file, '--sandbox', 'auto', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ rows: 1, reproduced: 1 });
    expect(code).toBe(0);
    expect(stderr).toContain(`sandbox: wasm, the embedded CPython 3.12.0, because docker cannot start: ${NO_DAEMON}`);
  });

  it('docker runs nothing elsewhere', () => {
    const advice = "start Docker and see 'propel sandbox status', or take --sandbox wasm";
    expect(withoutDaemon('check', file, '--sandbox', 'docker')).toEqual({
      code: 1,
      stdout: '',
      stderr: `propel: the docker sandbox cannot start: ${NO_DAEMON}; ${advice}\n`,
    });
  });

  it('wasm says nothing', () => {
    const { code, stderr } = withoutDaemon('check', file, '--sandbox', 'wasm');
    expect(code).toBe(0);
    expect(stderr).toMatch(/^check: 1 of 1 recorded outputs came out again \(.*\)\n$/);
  });

  it('is one of three', () => {
    const { code, stderr } = withoutDaemon('check', file, '--sandbox', 'none');
    expect(code).toBe(2);
    expect(stderr).toContain('Allowed choices are auto, docker, wasm');
  });

  it('sets sandbox.kind of a run', () => {
    const { stdout } = withoutDaemon(
      'config',
      '--set',
      'sandbox.kind=docker',
      '--set',
      'sandbox.docker={image: numpy}',
    );
    expect(stdout).toContain('kind: docker');
    expect(stdout).toContain('image: numpy');
  });
});

describe('propel sandbox', () => {
  it('status tells that no daemon answers', () => {
    const { code, stdout } = withoutDaemon('sandbox', 'status');
    expect(code).toBe(0);
    expect(stdout.split('\n')[0]).toBe(NO_DAEMON);
  });

  it.each([['build'], ['prune']])('%s fails in one line', (command) => {
    expect(withoutDaemon('sandbox', command)).toEqual({
      code: 1,
      stdout: '',
      stderr: `propel: ${NO_DAEMON}; start Docker, or name its socket in DOCKER_HOST\n`,
    });
  });
});
