// The effect, over several seeds: runs the embedded default once a seed (finished runs are reused) and checks what is claimed of it.
//   npm run effect                     seeds 0, 1 and 2, into runs/effect-<seed>
//   npm run effect -- --seeds 3,4,5 --json
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { disjoint, wilsonInterval } from '../dist/metrics/interval.js';
import { armSetups } from '../dist/pipeline/compare-config.js';
import { loadConfig } from '../dist/pipeline/config-file.js';
import { compareWithBaselines } from '../dist/probe/held-out.js';
import { comparisonClaims } from '../dist/report/comparison-claims.js';
import { compareArms } from '../dist/report/comparison.js';

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '0,1,2' }, json: { type: 'boolean', default: false } },
});
const main = join(dirname(dirname(fileURLToPath(import.meta.url))), 'dist', 'cli', 'main.js');
const seeds = values.seeds.split(',').map(Number);
const readJson = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'));

const runs = seeds.map((seed) => {
  const folder = join('runs', `effect-${seed}`);
  const started = performance.now();
  const { status } = spawnSync(process.execPath, [main, 'run', '--seed', String(seed), '--out', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) process.exit(status ?? 1);
  const seconds = (performance.now() - started) / 1000;
  return {
    seed,
    seconds,
    results: readJson(folder, 'results.json'),
    outOfFold: readJson(folder, 'probes', 'out-of-fold.json'),
  };
});

const checks = [];
const check = (claim, holds, figure) => checks.push({ claim, holds, figure });
const rate = (x) => `${(100 * x).toFixed(1)}%`;
for (const { seed, results } of runs) {
  const [base, propel] = ['base', 'propel'].map((name) => results.arms.find((arm) => arm.name === name));
  const uniqueInterval = (arm) => {
    const measured = arm.n - arm.ungraded;
    return wilsonInterval(Math.round(arm.uniqueFrontierRate * measured), measured);
  };
  const times = (figure) => propel[figure] / base[figure];
  const named = (claim) => `seed ${seed}: ${claim}`;
  check(
    named('frontier rate ≥ 1.8 × base'),
    times('frontierRate') >= 1.8,
    `${rate(base.frontierRate)} → ${rate(propel.frontierRate)}, × ${times('frontierRate').toFixed(2)}`,
  );
  check(
    named('95% intervals do not overlap'),
    disjoint(base.frontierInterval, propel.frontierInterval),
    `${base.frontierInterval.map(rate).join('–')} and ${propel.frontierInterval.map(rate).join('–')}`,
  );
  check(
    named('unique frontier rate ≥ 1.8 × base'),
    times('uniqueFrontierRate') >= 1.8 && disjoint(uniqueInterval(base), uniqueInterval(propel)),
    `${rate(base.uniqueFrontierRate)} → ${rate(propel.uniqueFrontierRate)}, × ${times('uniqueFrontierRate').toFixed(2)}`,
  );
  check(
    named('in band / valid ≥ 1.3 × base'),
    times('inBandOfValid') >= 1.3,
    `${rate(base.inBandOfValid)} → ${rate(propel.inBandOfValid)}, × ${times('inBandOfValid').toFixed(2)}`,
  );
  check(
    named('validity not below base'),
    propel.validity >= base.validity,
    `${rate(base.validity)} → ${rate(propel.validity)}`,
  );
  check(named('no solver trial in the RL loop'), propel.solverTrials.inLoop === 0, `${propel.solverTrials.inLoop}`);
}
// Over all seeds together, as a comparison would claim it; of mode collapse the default, which does nothing against it, claims nothing.
const setups = armSetups(loadConfig('pipelines/azr-micro.yaml').arms);
const arms = compareArms(
  setups,
  runs.map(({ results }) => results),
);
for (const { id, claim, verdict, figures } of comparisonClaims(arms, seeds)) {
  if (id !== 'mode-collapse')
    check(claim, verdict === 'holds', `${figures}${verdict === 'cannot be judged' ? '; cannot be judged' : ''}`);
}

const comparison = compareWithBaselines(
  runs.map(({ outOfFold }) => outOfFold),
  0,
);
const labels = runs.reduce((sum, { outOfFold }) => sum + outOfFold.length, 0);
for (const [baseline, other, { interval }] of [
  ['length', comparison.length, comparison.overLength],
  ['token n-grams', comparison.ngram, comparison.overNgram],
]) {
  const figure = `AUROC ${comparison.probe.toFixed(3)} against ${other.toFixed(3)}, difference ${interval.map((x) => x.toFixed(3)).join(' to ')}, n ${labels}`;
  check(`the probe beats ${baseline} (out of fold, pooled over seeds)`, interval[0] > 0, figure);
}

if (values.json)
  process.stdout.write(`${JSON.stringify({ seeds, seconds: runs.map((run) => run.seconds), checks }, null, 2)}\n`);
else
  for (const { claim, holds, figure } of checks)
    process.stdout.write(`${holds ? 'holds' : 'FAILS'}  ${claim}: ${figure}\n`);
process.exitCode = checks.every(({ holds }) => holds) ? 0 : 1;
