// Real trainers with the reward of `propel serve`: the clients of scripts/integrations, called as each trainer calls them.
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = join(PACKAGE, 'dist', 'cli', 'main.js');
const GENERATOR = join(PACKAGE, 'data', 'micro-world', 'generator');
/** Of GRPO, on 32 generations each. */
const STEPS = '5';

const part = (name, what, check = () => {}) => ({
  name,
  what,
  environment: 'trainers',
  async run({ python, folder }) {
    const { stdout, status, stderr } = spawnSync(process.execPath, [MAIN, 'prompts', '-n', '64'], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    const prompts = join(folder, 'prompts.jsonl');
    writeFileSync(prompts, stdout);
    const server = await serve();
    try {
      const clients = join(PACKAGE, 'scripts', 'integrations');
      const figures = await python(['trainers.py', name, server.url, clients, GENERATOR, prompts, STEPS]);
      check(figures);
      return figures;
    } finally {
      server.end();
    }
  },
});

export const TRAINERS = [
  part('trl', `${STEPS} steps of GRPO by the served reward`, (figures) => {
    if (!(figures['valid first'] > 0.5)) throw new Error(`valid at the first step: ${figures['valid first']}`);
  }),
  part('verl', 'its loader of reward functions and its default reward manager'),
  part('openrlhf', 'its executor with a remote reward, by the file and by the route'),
  part('verifiers', 'the taskset'),
];

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
