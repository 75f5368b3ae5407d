// scikit-learn, SciPy and NLTK beside our fits, metrics and diversity, on seeded inputs with odd ones among them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeWords, distinctN, selfBleu3 } from '../../dist/metrics/diversity.js';
import { wilsonInterval } from '../../dist/metrics/interval.js';
import { TaskIndex } from '../../dist/metrics/near-duplicates.js';
import { auroc, averagePrecision, brierScore, expectedCalibrationError } from '../../dist/metrics/probe-metrics.js';
import { skeleton } from '../../dist/metrics/python-tokens.js';
import { seededRandom } from '../../dist/metrics/random.js';
import { studentInterval } from '../../dist/metrics/student.js';
import { Engine } from '../../dist/lm/engine.js';
import { Tokenizer } from '../../dist/lm/tokenizer.js';
import { bandLogits, bandLogLoss, isInBand } from '../../dist/probe/count-head.js';
import { fitHead } from '../../dist/probe/fit.js';
import { standardisationOf } from '../../dist/probe/matrix.js';

const SEED = process.env.PROPEL_PEERS_SEED ?? '1';
const GENERATOR = fileURLToPath(new URL('../../data/micro-world/generator', import.meta.url));
/** Closed forms in float64 on both sides. */
const EXACT = 1e-12;
/** Of fits in float32, relative to the largest: where the objective is flat, its values tell no more. */
const FITTED = 2e-2;
/** Of the objective in float64, by which ours may lie above the peer's. */
const EXCESS = 5e-6;
/** Wilson's z is 1.96 here and 1.95996… there. */
const ROUNDED = 1e-4;
const BAND = { min: 1, max: 3 };
const K = 4;
const BINS = 10;

/** The largest difference of each figure; what goes beyond its tolerance is kept in words. */
class Differences {
  figures = {};
  #beyond = [];

  note(figure, tolerance, of, ours, theirs) {
    const bothMissing = (ours === null || Number.isNaN(ours)) && theirs === null;
    const off = bothMissing ? 0 : Math.abs(ours - theirs);
    const missing = !bothMissing && (ours === null || theirs === null || !Number.isFinite(off));
    if (missing || off > tolerance) this.#beyond.push(`${of}: ${figure} ${ours}, the peer's ${theirs}`);
    this.figures[figure] = Math.max(this.figures[figure] ?? 0, missing ? Infinity : off);
  }

  /** The figures in short, or an error that says what differs. */
  result(counts) {
    for (const line of this.#beyond.slice(0, 20)) console.log(`  ${line}`);
    if (this.#beyond.length > 0) throw new Error(`${this.#beyond.length} numbers differ`);
    const off = ([figure, value]) => [figure, value === 0 ? '0' : value.toExponential(1)];
    return { ...counts, ...Object.fromEntries(Object.entries(this.figures).map(off)) };
  }
}

async function asked(python, folder, part, given) {
  const file = join(folder, 'given.json');
  writeFileSync(file, JSON.stringify(given));
  return python(['measures.py', part, file]);
}

export const MEASURES = [
  {
    name: 'sklearn',
    what: 'fits of probes on hidden states, metrics and intervals: largest differences',
    environment: 'measures',
    async run({ python, folder }) {
      const fits = await fitCases();
      const metrics = metricCases();
      const proportions = [0, 1, 7, 50, 99, 100]
        .flatMap((k) => [100, 101, 12_345].map((n) => [k, n]))
        .concat([
          [0, 1],
          [1, 1],
        ]);
      const random = seededRandom(`means ${SEED}`);
      const means = [2, 3, 5, 10, 31, 200]
        .map((n) => Array.from({ length: n }, () => 3 * random() - 1))
        .concat([[1, 1, 1]]);
      const given = { fits: fits.map(({ given: fit }) => fit), metrics, proportions, means };
      const theirs = await asked(python, folder, 'sklearn', given);

      const seen = new Differences();
      fits.forEach(({ name, head, counts, matrix }, i) => {
        const peer = theirs.fits[i];
        const all = (figure, tolerance, ours, others) => {
          if (ours.length !== others.length)
            throw new Error(`${name}: ${ours.length} ${figure}, the peer has ${others.length}`);
          const scale = Math.max(1, ...others.map(Math.abs));
          others.forEach((x, at) => seen.note(figure, tolerance, name, ours[at] / scale, x / scale));
        };
        all('means', 1e-6, head.standardisation.mean, peer.mean);
        all('deviations', 1e-6, head.standardisation.sd, peer.sd);
        all('coefficients', FITTED, head.weights, peer.weights);
        // A softmax's biases are free up to a constant.
        const middle = (x) => (head.kind === 'band' ? 0 : x.reduce((sum, value) => sum + value, 0) / x.length);
        const centred = (x) => Array.from(x, (value) => value - middle(x));
        all('intercepts', FITTED, centred([...head.offsets]), centred(peer.offsets));
        const classes = peer.classes.length;
        const sum = (row, chosen) =>
          Math.log(
            peer.classes.reduce(
              (total, c, at) => total + (chosen(c) ? Math.exp(peer.logProbabilities[row * classes + at]) : 0),
              0,
            ),
          );
        const objective = (weights, offsets) =>
          penalised(head.kind, matrix, head.standardisation, fits[i].given, weights, offsets);
        const excess = objective(head.weights, head.offsets) - objective(peer.weights, peer.offsets);
        seen.note('objective', EXCESS, name, Math.max(0, excess), 0);
        const inside = head.kind === 'band' ? (c) => c === 1 : (c) => isInBand(c, BAND);
        const logits = counts.map((_, row) => sum(row, inside) - sum(row, (c) => !inside(c)));
        all('logits', FITTED, [...bandLogits(head, matrix)], logits);
      });
      metrics.forEach(({ name, labels, probabilities, bins }, i) => {
        const peer = theirs.metrics[i];
        const within = labels.map((label) => label === 1);
        seen.note('AUROC', EXACT, name, auroc(labels, probabilities), peer.auroc);
        seen.note('average precision', EXACT, name, averagePrecision(labels, probabilities), peer.averagePrecision);
        seen.note('Brier', EXACT, name, brierScore(labels, probabilities), peer.brier);
        const logits = probabilities.map((p) => Math.log(p) - Math.log1p(-p));
        if (peer.logLoss !== null) seen.note('log loss', 1e-9, name, bandLogLoss(within, logits), peer.logLoss);
        if (peer.ece !== null)
          seen.note('ECE', EXACT, name, expectedCalibrationError(labels, probabilities, bins), peer.ece);
      });
      proportions.forEach(([k, n], i) =>
        wilsonInterval(k, n).forEach((end, side) =>
          seen.note('Wilson', ROUNDED, `${k} of ${n}`, end, theirs.proportions[i][side]),
        ),
      );
      means.forEach((values, i) =>
        studentInterval(values).forEach((end, side) =>
          seen.note('Student', 5e-3, `${values.length} values`, end, theirs.means[i][side]),
        ),
      );
      return seen.result({ fits: fits.length, sets: metrics.length });
    },
  },
  {
    name: 'nltk',
    what: 'words, Self-BLEU, Distinct-n and similarity of tasks: largest differences',
    environment: 'measures',
    async run({ python, folder }) {
      const sets = textSets();
      const texts = [...new Set(sets.flat())];
      const skeletons = sets.map((set) => set.map((text) => skeleton(text)));
      const theirs = await asked(python, folder, 'nltk', { texts, sets, skeletons });
      const seen = new Differences();
      const different = texts.filter((text, i) => JSON.stringify(codeWords(text)) !== JSON.stringify(theirs.words[i]));
      seen.note('texts cut otherwise', 0, JSON.stringify(different[0]), different.length, 0);
      sets.forEach((set, i) => {
        const [words, peer, of] = [set.map(codeWords), theirs.sets[i], JSON.stringify(set).slice(0, 80)];
        seen.note('Self-BLEU-3', 1e-9, of, selfBleu3(words), peer.selfBleu3);
        for (const n of [1, 2, 3]) seen.note(`Distinct-${n}`, EXACT, of, distinctN(words, n), peer[`distinct${n}`]);
        const index = new TaskIndex();
        set.forEach((text, at) => {
          const task = { type: 'deduction', text };
          seen.note('similarity', EXACT, `${of}, ${at}`, index.nearest(task), theirs.nearest[i][at]);
          index.add(task);
        });
      });
      return seen.result({ texts: texts.length, sets: sets.length });
    },
  },
];

/** The objective in float64: mean −log P of the targets, plus l2/2 · ‖weights‖². */
function penalised(kind, { rows, columns, data }, { mean, sd }, { targets, l2 }, weights, offsets) {
  let loss = 0;
  for (let row = 0; row < rows; row++) {
    const scores = Array.from(offsets, (offset, output) => {
      let score = offset;
      for (let column = 0; column < columns; column++)
        score += weights[output * columns + column] * ((data[row * columns + column] - mean[column]) / sd[column]);
      return score;
    });
    const all = kind === 'band' ? [0, scores[0]] : scores;
    const top = Math.max(...all);
    loss += top + Math.log(all.reduce((sum, score) => sum + Math.exp(score - top), 0)) - all[targets[row]];
  }
  return loss / rows + (l2 / 2) * weights.reduce((sum, weight) => sum + weight * weight, 0);
}

/** Heads on hidden states of the micro-world's generator, over penalties; some features constant, far from zero, or nearly equal. */
async function fitCases() {
  const random = seededRandom(`fits ${SEED}`);
  const rows = 200;
  const layer = 2;
  let states;
  const engine = await Engine.create({ provider: 'cpu', threads: 1 });
  try {
    const tokenizer = await Tokenizer.open(GENERATOR);
    const sequences = programs(random, rows).map((text) => tokenizer.encode(text));
    states = (await engine.hiddenStates(GENERATOR, { sequences, layers: [layer], poolings: ['last'] })).get(layer);
  } finally {
    await engine.close();
  }
  const width = states.data.length / rows;
  const plain = { rows, columns: width, data: Float32Array.from(states.data) };
  const odd = { ...plain, data: plain.data.slice() };
  for (let row = 0; row < rows; row++) {
    odd.data[row * width] = 7;
    odd.data[row * width + 1] = 1000 + odd.data[row * width + 1];
    odd.data[row * width + 2] = odd.data[row * width + 3] + 1e-3 * random();
  }
  const direction = Array.from({ length: width }, () => 2 * random() - 1);
  const cases = [];
  for (const [kindOfStates, matrix] of [
    ['hidden states', plain],
    ['odd columns', odd],
  ]) {
    const standardisation = standardisationOf(matrix);
    const features = Array.from({ length: rows }, (_, row) => [
      ...matrix.data.subarray(row * width, (row + 1) * width),
    ]);
    for (const rare of [false, true]) {
      const counts = features.map((row) => {
        const z = row.reduce(
          (sum, x, i) => sum + (direction[i] * (x - standardisation.mean[i])) / standardisation.sd[i],
          0,
        );
        const p = 1 / (1 + Math.exp(-z / Math.sqrt(width) + (rare ? 4 : 0)));
        return Array.from({ length: K }, random).filter((u) => u < p).length;
      });
      // scikit-learn knows the classes that it saw; ours gives the others their place all the same.
      const kinds = new Set(counts).size === K + 1 ? ['band', 'counts'] : ['band'];
      for (const kind of kinds) {
        for (const l2 of [0.01, 0.1, 1]) {
          const head = await fitHead({ kind, k: K, band: BAND, counts }, matrix, standardisation, l2);
          const targets = kind === 'band' ? counts.map((count) => Number(isInBand(count, BAND))) : counts;
          const name = `${kind}, ${kindOfStates}${rare ? ', few in band' : ''}, l2 ${l2}`;
          cases.push({ name, head, counts, matrix, given: { features, targets, l2 } });
        }
      }
    }
  }
  return cases;
}

/** Labels and probabilities: distinct, with ties, all equal, of one class, certain, of one row. */
function metricCases() {
  const random = seededRandom(`metrics ${SEED}`);
  const draw = (n, probability, label = (p) => Number(random() < p)) => {
    const probabilities = Array.from({ length: n }, probability);
    return { probabilities, labels: probabilities.map(label), bins: BINS };
  };
  const drawn = Array.from({ length: 30 }, (_, i) => [
    { name: `distinct ${i}`, ...draw(200, random) },
    { name: `ties ${i}`, ...draw(1 + Math.floor(300 * random()), () => Math.round(10 * random()) / 10) },
  ]);
  return [
    ...drawn.flat(),
    { name: 'all equal', ...draw(50, () => 0.3) },
    { name: 'one class: none', ...draw(50, random, () => 0) },
    { name: 'one class: all', ...draw(50, random, () => 1) },
    { name: 'certain and right', probabilities: [0, 0, 1, 1], labels: [0, 0, 1, 1], bins: BINS },
    { name: 'certain and wrong', probabilities: [1, 1, 0, 0], labels: [0, 0, 1, 1], bins: BINS },
    { name: 'rare', ...draw(2000, () => 0.01 * random()) },
    { name: 'one row', probabilities: [0.4], labels: [1], bins: BINS },
    { name: 'tiny differences', probabilities: [0.5, 0.5 + 1e-16, 0.5 + 2e-16, 0.5], labels: [1, 0, 1, 0], bins: BINS },
  ];
}

const LINES = [
  (d) => `    x = [v ${'+-*'[d(3)]} ${1 + d(4)} for v in x]`,
  (d) => `    t = 0\n    for v in x:\n        t += v % ${2 + d(4)}\n    x = [t] + x`,
  (d) => `    if len(x) > ${2 + d(3)}:\n        x = x[::-1]`,
  () => '    x = sorted(x)',
];

/** Small programs in the micro-world's manner. */
function programs(random, count) {
  const d = (n) => Math.floor(n * random());
  return Array.from({ length: count }, () => {
    const body = Array.from({ length: d(4) }, () => LINES[d(LINES.length)](d));
    const values = Array.from({ length: d(6) }, () => d(40)).join(', ');
    return `def f(x):\n${[...body, `    return x[${[':2', '1:', '::-1'][d(3)]}]`].join('\n')}\n>>> f([${values}])`;
  });
}

/** Sets of texts: programs, with repeats, of few words, empty ones, other scripts. */
function textSets() {
  const random = seededRandom(`texts ${SEED}`);
  const d = (n) => Math.floor(n * random());
  const alphabets = ['ab', 'abcdefgh ', ' \n\t', 'x=1+\n ', "é½٣x²…\u{1f642}_U\u0301\u2028\u00a0'"];
  const word = (alphabet) => alphabet[d(alphabet.length)];
  const few = (alphabet) => {
    const letters = [...alphabet];
    return Array.from({ length: d(8) }, () => Array.from({ length: d(12) }, () => word(letters)).join(d(2) ? ' ' : ''));
  };
  const repeated = programs(random, 3);
  return [
    programs(random, 100),
    [...programs(random, 10), ...Array.from({ length: 10 }, () => repeated[d(3)])],
    ...Array.from({ length: 20 }, () => alphabets.map(few)).flat(),
    [],
    [''],
    ['', ''],
    ['a b c'],
    ['', 'a b c', 'a b c d'],
    ['a b c d e', 'a b c d e'],
    ['a b c', 'a b c d e', 'a b c d e f g'],
    ['a', 'a b', 'b'],
    ['a a a a b', 'a a b b', 'a b c'],
  ];
}
