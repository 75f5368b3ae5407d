// Real trainers with the reward of `propel serve`: the clients of scripts/integrations, called as each trainer calls them.
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(PACKAGE, 'dist', 'cli', 'main.js');
const GENERATOR = join(PACKAGE, 'data', 'micro-world', 'generator');
/** Of GRPO: steps, generations a step, those of one group, learning rate. */
const SHORT = ['5', '32', '8', '1e-3'];
const LONG = ['20', '96', '32', '4e-3'];
/** Fresh generations of each generator, re-scored by the solver. */
const GENERATIONS = 800;
/** What the reward must be worth: the frontier rate beside the untrained generator's, and the repeats among its texts at most. */
const EFFECT = { times: 2, repeats: 0.1 };

const part = (name, what, { script = name, grpo = [], check = (figures) => figures } = {}) => ({
  name,
  what,
  environment: 'trainers',
  async run({ python, folder }) {
    const prompts = join(folder, 'prompts.jsonl');
    writeFileSync(prompts, propel('prompts', '-n', '400'));
    const server = await serve();
    let figures;
    try {
      const clients = join(PACKAGE, 'scripts', 'integrations');
      figures = await python(['trainers.py', script, server.url, clients, GENERATOR, prompts, ...grpo]);
    } finally {
      server.end();
    }
    return check(figures, folder);
  },
});

export const TRAINERS = [
  part('trl', `${SHORT[0]} steps of GRPO by the served reward, and what a repeat is paid`, {
    grpo: SHORT,
    check(figures) {
      if (!(figures['valid first'] > 0.5)) throw new Error(`valid at the first step: ${figures['valid first']}`);
      return figures;
    },
  }),
  part('trl-effect', `${LONG[0]} steps of GRPO, and what the solver then finds of the generator`, {
    script: 'trl',
    grpo: LONG,
    check: rescore,
  }),
  part('verl', 'its loader of reward functions and its default reward manager'),
  part('openrlhf', 'its executor with a remote reward, by the file and by the route'),
  part('verifiers', 'the taskset'),
];

/** The adapter that a trainer has left in the folder, beside the generator that it began with. @throws Error where the effect is too small */
function rescore(figures, folder) {
  const file = join(folder, 'rescore.yaml');
  const policy = { base: GENERATOR, adapter: join(folder, 'adapter') };
  const settings = {
    extends: join(PACKAGE, 'pipelines', 'azr-micro.yaml'),
    arms: { propel: null, 'propel-wco': null, trl: { reward: 'none', policy } },
    evaluate: { generations: GENERATIONS },
  };
  writeFileSync(file, JSON.stringify(settings));
  const { arms } = JSON.parse(propel('evaluate', file, '--out', join(folder, 'run'), '--json'));
  const [base, trained] = ['base', 'trl'].map((name) => arms.find((arm) => arm.name === name));
  const share = (value) => `${(100 * value).toFixed(1)}%`;
  const interval = ({ frontierInterval }) => frontierInterval.map(share).join(' to ');
  const repeats = Math.max(1 - trained.unique / trained.n, figures['repeats last']);
  const found = {
    ...figures,
    generations: GENERATIONS,
    'frontier of the base': `${share(base.frontierRate)} (${interval(base)})`,
    'frontier after': `${share(trained.frontierRate)} (${interval(trained)})`,
    'each task once': `${share(base.uniqueFrontierRate)} and ${share(trained.uniqueFrontierRate)}`,
    'repeats among them': share(1 - trained.unique / trained.n),
  };
  const times = trained.frontierRate / base.frontierRate;
  if (!(times >= EFFECT.times && repeats <= EFFECT.repeats)) throw new Error(`too small: ${JSON.stringify(found)}`);
  return found;
}

/** What a command prints. */
function propel(...args) {
  const { stdout, status, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    cwd: PACKAGE,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1));
  return stdout;
}

async function serve() {
  const probe = join(PACKAGE, 'probes', 'azr-micro', 'probe-0');
  const child = spawn(process.execPath, [MAIN, 'serve', '--probe', probe, '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += chunk));
  let text = '';
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      text += chunk;
      if (text.endsWith('}\n')) resolve(JSON.parse(text).url);
    });
    child.once('exit', () => reject(new Error(errors)));
  });
  return { url, end: () => child.kill('SIGKILL') };
}
