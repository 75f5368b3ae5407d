/** What a run folder remembers of how its rows were computed. Needs `npm run build`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from './config-file.js';
import type { Workspace as WorkspaceType } from './workspace.js';

const built = new URL('../../dist/pipeline/workspace.js', import.meta.url);
const { Workspace } = (await import(built.href)) as typeof import('./workspace.js');

function openRun(): WorkspaceType {
  const folder = mkdtempSync(join(tmpdir(), 'propel-workspace-'));
  const workspace = Workspace.open({
    config: loadConfig('pipelines/azr-micro.yaml', ['engine.provider=cpu']),
    folder,
    fresh: false,
    progress: () => ({ update() {}, done() {} }),
    signal: new AbortController().signal,
  });
  onTestFinished(async () => {
    await workspace.close();
    rmSync(folder, { recursive: true });
  });
  return workspace;
}

it('a run writes down its provider and the type of its products', async () => {
  const workspace = openRun();
  await workspace.policy();
  expect(workspace.store.run()!.versions).toMatchObject({ provider: 'cpu', dtype: 'float32' });
});

it.each([
  ['provider', 'cuda', /^the run was begun on cuda, and engine.provider gives cpu now: go on where cuda works, or /],
  [
    'dtype',
    'bfloat16',
    /^the run was begun in bfloat16, and engine.dtype gives float32 now: go on where bfloat16 works/,
  ],
])('a run that was begun with another %s is not gone on with', async (key, begun, message) => {
  const workspace = openRun();
  workspace.store.recordVersion(key, begun);
  await expect(workspace.policy()).rejects.toThrow(message);
  await expect(workspace.policy()).rejects.toMatchObject({ name: 'UserError', exitCode: 2 });
});
