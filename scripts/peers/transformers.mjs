/**
 * Models as transformers reads them. Tiny checkpoints with odd configurations, tokenizers and chat templates, drawn by seed, are opened by
 * transformers and by propel: each comes out equal, refused by name, or as a silent disagreement, of which there must be none.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openCheckpoint } from '../../dist/lm/checkpoint.js';
import { FAMILIES } from '../../dist/lm/config.js';
import { readEndTokens } from '../../dist/lm/end-tokens.js';
import { Engine } from '../../dist/lm/engine.js';
import { Tokenizer } from '../../dist/lm/tokenizer.js';

/** Largest |difference| of a log-probability, float32 on both sides. */
const TOLERANCE = 2e-4;

const script = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Run a Python file of this folder. */
function python(peer, name, ...args) {
  execFileSync(peer, ['-P', script(name), ...args.map(String)], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, OMP_NUM_THREADS: '1', HF_HUB_OFFLINE: '1', TOKENIZERS_PARALLELISM: 'false' },
  });
}

/** What propel says of a model that transformers has opened or refused. @returns [verdict, detail] */
async function judgeModel(folder, expected) {
  const engine = await Engine.create({ provider: 'cpu', threads: 1 });
  try {
    const { config } = openCheckpoint(folder);
    if (expected.refused) return ['the peer refuses', `${expected.refused} (${expected.at})`];
    if (expected.madeUp.length > 0) return ['SILENT', `transformers makes up ${expected.madeUp.join(', ')}`];
    const ends = readEndTokens(folder);
    const lacking = expected.ends.filter((id) => !ends.includes(id));
    if (lacking.length > 0) return ['SILENT', `ends ${ends.join()} lack ${lacking.join()}`];
    let most = 0;
    let compared = 0;
    for (const [length, rows] of Object.entries(expected.logProbs)) {
      const time = Number(length);
      if (time > config.maxPositions) continue;
      compared = time;
      const batch = {
        batch: rows.length,
        time,
        ids: BigInt64Array.from(
          rows.flatMap(() => expected.ids.slice(0, time)),
          BigInt,
        ),
        labels: BigInt64Array.from(
          expected.labels.flatMap((row) => row.slice(0, time)),
          BigInt,
        ),
        mask: new Float32Array(rows.length * time).fill(1),
      };
      const out = await engine.logProbs(folder, batch, null);
      rows.flat().forEach((x, i) => {
        const difference = Math.abs(x - out[i]);
        if (!(difference <= most)) most = difference;
      });
    }
    if (!(most <= TOLERANCE)) return ['SILENT', `log-probabilities differ by ${most.toPrecision(3)}`];
    return compared === 0
      ? ['refused', 'no position that was tried']
      : ['equal', `to ${compared} tokens, ${most.toExponential(0)}`];
  } catch (error) {
    if (error.name !== 'UserError') return ['SILENT', `${error.name}: ${error.message}`.slice(0, 300)];
    if (expected.refused) return ['both refuse', error.message];
    return ['refused', error.message.replaceAll(folder, '')];
  } finally {
    await engine.close();
  }
}

export async function compareModels(peer, folder, first, count) {
  // A folder that is kept is judged again.
  if (!existsSync(folder)) python(peer, 'transformers_models.py', folder, first, count, Object.keys(FAMILIES).join());
  const results = [];
  for (const name of readdirSync(folder).toSorted()) {
    const expected = JSON.parse(readFileSync(join(folder, name, 'expected.json'), 'utf8'));
    const [verdict, detail] = await judgeModel(join(folder, name), expected);
    results.push({ name, kinds: expected.kinds, verdict, detail });
  }
  return results;
}

/** What propel says of a tokenizer and its chat template. @returns [verdict, detail] */
async function judgeTokenizer(folder, expected) {
  let tokenizer;
  try {
    tokenizer = await Tokenizer.open(folder);
  } catch (error) {
    if (error.name !== 'UserError') return ['SILENT', `${error.name}: ${error.message}`.slice(0, 300)];
    if (expected.refused) return ['both refuse', error.message];
    return ['refused', error.message.replaceAll(folder, '')];
  }
  if (expected.refused) return ['the peer refuses', `${expected.refused} (${expected.at})`];
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  if (!same(tokenizer.prefix, expected.prefix)) return ['SILENT', `prefix ${tokenizer.prefix}, not ${expected.prefix}`];
  if (expected.eos !== null && tokenizer.eos !== expected.eos)
    return ['SILENT', `eos ${tokenizer.eos}, not ${expected.eos}`];
  for (const [text, ids, decoded] of expected.rows) {
    let own;
    try {
      own = tokenizer.encode(text);
    } catch (error) {
      if (error.name !== 'UserError') return ['SILENT', `${JSON.stringify(text)}: ${error.stack}`];
      return ['refused', error.message];
    }
    if (!same(own, ids)) return ['SILENT', `${JSON.stringify(text)} is ${own}, not ${ids}`];
    const back = tokenizer.decode(ids);
    if (back !== decoded) return ['SILENT', `${ids} is ${JSON.stringify(back)}, not ${JSON.stringify(decoded)}`];
  }
  if (tokenizer.hasChat !== expected.chats.length > 0)
    return ['SILENT', `has ${tokenizer.hasChat ? 'a' : 'no'} chat template`];
  for (const [content, ids, filled] of expected.chats) {
    let own;
    try {
      own = tokenizer.question(content, 'auto');
    } catch (error) {
      if (error.name !== 'UserError') return ['SILENT', `template: ${error.stack}`];
      return [ids === null ? 'both refuse' : 'refused', `template: ${error.message}`];
    }
    if (ids === null) return ['the peer refuses', `template: ${filled}`];
    if (!same(own, ids))
      return ['SILENT', `template: ${JSON.stringify(tokenizer.decode(own))}, not ${JSON.stringify(filled)}`];
  }
  return ['equal', ''];
}

export async function compareTokenizers(peer, folder, first, count) {
  if (!existsSync(folder)) python(peer, 'transformers_tokenizers.py', folder, first, count);
  const results = [];
  for (const name of readdirSync(folder).toSorted()) {
    const expected = JSON.parse(readFileSync(join(folder, name, 'expected.json'), 'utf8'));
    const [verdict, detail] = await judgeTokenizer(join(folder, name), expected);
    results.push({ name, kinds: expected.kinds, verdict, detail });
  }
  return results;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , peer, what, first = '0', count = '400', keep] = process.argv;
  const folder = keep ?? join(mkdtempSync(join(tmpdir(), 'propel-peers-')), what);
  const compare = what === 'models' ? compareModels : compareTokenizers;
  const results = await compare(peer, folder, Number(first), Number(count));
  for (const { name, kinds, verdict, detail } of results) {
    console.log(`${name} ${verdict}: ${detail} [${kinds.join('; ')}]`);
  }
  for (const verdict of new Set(results.map((one) => one.verdict))) {
    console.log(`${verdict}: ${results.filter((one) => one.verdict === verdict).length}`);
  }
  if (keep === undefined) rmSync(folder, { recursive: true });
}
