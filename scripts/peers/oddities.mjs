// transformers beside our reading of whole folders: tiny checkpoints with every key that a config.json may hold, and small tokenizers of all kinds with the files
// around them, chat templates too. Each comes out equal, is refused by name, or differs silently, of which there must be none.
//     PROPEL_PEERS_KEEP=FOLDER    keeps the folders, or judges those that are kept there again
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openCheckpoint } from '../../dist/lm/checkpoint.js';
import { FAMILIES } from '../../dist/lm/families.js';
import { readEndTokens } from '../../dist/lm/end-tokens.js';
import { Engine } from '../../dist/lm/engine.js';
import { Tokenizer } from '../../dist/lm/tokenizer.js';

const COUNT = process.env.PROPEL_PEERS_CONFIGURATIONS ?? '400';
const FIRST = process.env.PROPEL_PEERS_SEED ?? '0';
/** Largest |difference| of a log-probability, float32 on both sides. */
const TOLERANCE = 2e-4;

export const ODDITIES = [
  {
    name: 'checkpoints',
    what: `${COUNT} folders of all families, odd keys and odd weight files: equal log-probabilities and ends, or refused by name`,
    environment: 'trainers',
    run: (context) => compare(context, 'odd_checkpoints.py', [Object.keys(FAMILIES).join(',')], judgeModel),
  },
  {
    name: 'tokenizers',
    what: `${COUNT} small tokenizers of all kinds with odd files and chat templates: equal ids, texts and prompts, or refused by name`,
    environment: 'trainers',
    run: (context) => compare(context, 'odd_tokenizers.py', [], judgeTokenizer),
  },
];

async function compare({ python, folder }, program, args, judge) {
  const cases = join(process.env.PROPEL_PEERS_KEEP ?? folder, program.replace('.py', ''));
  if (!existsSync(cases)) await python([program, cases, FIRST, COUNT, ...args]);
  const results = [];
  for (const name of readdirSync(cases).toSorted()) {
    const expected = JSON.parse(readFileSync(join(cases, name, 'expected.json'), 'utf8'));
    const [verdict, detail] = await judge(join(cases, name), expected);
    results.push({ verdict, line: `${name} ${verdict}: ${detail} [${expected.kinds.join('; ')}]` });
  }
  const count = (verdict) => results.filter((one) => one.verdict === verdict).length;
  for (const { verdict, line } of results) {
    if (verdict === 'SILENT' || process.env.PROPEL_PEERS_VERBOSE) console.log(`  ${line}`);
  }
  if (count('SILENT') > 0) throw new Error(`${count('SILENT')} of ${results.length} differ silently`);
  return {
    folders: results.length,
    equal: count('equal'),
    refused: count('refused'),
    'refused by transformers': count('the peer refuses') + count('both refuse'),
  };
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
