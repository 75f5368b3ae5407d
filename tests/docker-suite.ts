/**
 * Suites that need a Docker daemon run where one answers: `describe.skipIf(missing !== null)`; elsewhere they are reported as
 * not run, by name. `PROPEL_REQUIRE_DOCKER=1` makes that a failure.
 */
import { findDaemon } from '../src/sandbox/docker/daemon.js';
import { buildImage, findImage } from '../src/sandbox/docker/image.js';

/** Why these suites cannot run here; null when they can. */
export const missing: string | null = await findMissing();

if (missing !== null && process.env['PROPEL_REQUIRE_DOCKER'] === '1') {
  throw new Error(`PROPEL_REQUIRE_DOCKER is set, and ${missing}`);
}

/** Put behind the name of such a suite: why it does not run; empty where it does. */
export const notRun = missing === null ? '' : ` (not run: ${missing})`;

if (missing !== null) process.stderr.write(`NOT RUN: suites of the docker sandbox, because ${missing}\n`);

async function findMissing(): Promise<string | null> {
  try {
    const { docker } = await findDaemon();
    if ((await findImage(docker, 'plain')) === null) await buildImage(docker, 'plain');
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
