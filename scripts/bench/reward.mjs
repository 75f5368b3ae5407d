// What a reward costs a candidate: the probe's logit on the frozen reference, against K attempts of the solver, on the micro-world's models.
import { tmpdir } from 'node:os';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { attemptTasks } from '../../dist/pipeline/attempts.js';
import { loadConfig } from '../../dist/pipeline/config-file.js';
import { propose } from '../../dist/pipeline/propose.js';
import { Workspace } from '../../dist/pipeline/workspace.js';
import { Probe, scoreTexts } from '../../dist/probe/probe.js';

const CANDIDATES = 96;

export async function rows({ threads, rounds }) {
  const config = loadConfig('pipelines/azr-micro.yaml', [`engine.threads=${threads}`]);
  const folder = mkdtempSync(join(tmpdir(), 'propel-bench-'));
  const silent = () => ({ update() {}, done() {} });
  const workspace = Workspace.open({
    config,
    folder,
    fresh: false,
    progress: silent,
    signal: new AbortController().signal,
  });
  try {
    const key = { phase: 'label', arm: '', batch: 0 };
    const policy = await workspace.policy();
    const batch = { key, policy, size: CANDIDATES, adapter: null, temperature: 1, earlier: null };
    const proposals = await propose(workspace, batch);
    const valid = proposals.filter(({ task }) => task);
    const tasks = valid.map(({ row, task }) => ({ id: row.id, task }));
    const reference = await workspace.reference();
    const probe = untrainedProbe(config, reference.config.width);
    const milliseconds = async (work) => {
      let least = Infinity;
      for (let round = 0; round <= rounds; round++) {
        const started = performance.now();
        await work();
        // The first round compiles the graphs.
        if (round > 0) least = Math.min(least, performance.now() - started);
      }
      return least / valid.length;
    };
    return [
      {
        name: 'reward of a candidate',
        unit: 'ms',
        ours: await milliseconds(() =>
          scoreTexts(
            reference,
            [probe],
            valid.map(({ row }) => row.rendered),
          ),
        ),
        peer: `${config.band.of} solver attempts, graded`,
        theirs: await milliseconds(() =>
          attemptTasks(workspace, tasks, { key, purpose: 'bench', index: 0, split: 'bench' }),
        ),
        lessIsBetter: true,
      },
    ];
  } finally {
    await workspace.close();
    rmSync(folder, { recursive: true });
  }
}

/** A probe of the default's shape: what its numbers are makes no difference to what it costs. */
function untrainedProbe(config, width) {
  const [spec] = config.probe.features;
  const columns = spec.length * width;
  const { min, max, of: k } = config.band;
  const head = {
    kind: config.probe.head,
    k,
    band: { min, max },
    standardisation: { mean: new Float32Array(columns), sd: new Float32Array(columns).fill(1) },
    weights: new Float32Array((k + 1) * columns).fill(0.01),
    offsets: new Float32Array(k + 1),
  };
  return new Probe(spec, head, { mean: 0, sd: 1 });
}
