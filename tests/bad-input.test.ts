/** Bad input: one line that names what, where and what to do, exit code 2, nothing on standard output, and no file written or changed. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readTensors, writeTensors } from '../src/lm/safetensors.js';
import { contentsOf, errorLine, MAIN, PACKAGE, propelIn, sets, temporaryFolder } from './propel-process.js';

const folder = temporaryFolder();

/** The command's one line. */
function refusal(...args: string[]): string {
  const before = contentsOf(folder);
  const ended = propelIn(folder, args);
  expect(ended.code).toBe(2);
  expect(contentsOf(folder)).toEqual(before);
  return errorLine(ended);
}

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

const label = (...args: string[]): string => refusal('label', '--json', '--out', 'out', ...args);
const EVERY_SETTING = "; 'propel config --schema' documents every setting";

describe('usage', () => {
  it.each([
    [['frobnicate'], "propel: unknown command 'frobnicate'; see --help"],
    [['run', '--frob'], "propel: unknown option '--frob'; see --help"],
    [['run', 'a.yaml', 'b.yaml'], "propel: too many arguments for 'run'. Expected 1 argument but got 2.; see --help"],
    [['run', '--set'], "propel: option '--set <key=value>' argument missing; see --help"],
    [
      ['run', '--seed', 'x'],
      "propel: option '--seed <n>' argument 'x' is invalid. Give a whole number from 0.; see --help",
    ],
    [
      ['run', '--out', ''],
      "propel: option '--out <folder>' argument '' is invalid. Give the path of a folder.; see --help",
    ],
  ])('%j', (args, line) => {
    expect(refusal(...args)).toBe(line);
  });
});

describe('a type of products', () => {
  it('that the provider does not compute in', () => {
    const setting = 'engine={provider: cpu, dtype: bfloat16}';
    expect(label('pipelines/azr-micro.yaml', '--set', setting)).toBe(
      `propel: --set ${setting}: engine.dtype: cpu computes in float32, not in bfloat16: set dtype: auto, or another provider${EVERY_SETTING}`,
    );
  });
});

describe('a configuration file', () => {
  const DEFAULT = readFileSync(join(PACKAGE, 'pipelines', 'azr-micro.yaml'), 'utf8');
  const config = (text: string): string => label(write('mine.yaml', text));
  const mine = `propel: ${join(folder, 'mine.yaml')}`;
  const lineOf = (line: string): number => DEFAULT.split('\n').indexOf(line) + 1;

  it('that does not exist', () => {
    expect(label('none.yaml')).toBe(
      `propel: configuration none.yaml does not exist; give a path from the working folder or from ${PACKAGE}`,
    );
  });

  it('that is a folder', () => {
    expect(label('.')).toBe(`propel: ${folder} is a folder; give a YAML file`);
  });

  it('that is not YAML: the line is named', () => {
    expect(config('name: x\nseed: 3\nmodels:\n  policy: [a\narms: {}\n')).toMatch(
      /^propel: \/.*\/mine\.yaml:5: not valid YAML: .*; correct that line$/,
    );
  });

  it('with a key twice, a reference to nothing, a second document', () => {
    expect(config(`${DEFAULT}\nseed: 4\n`)).toMatch(/mine\.yaml:\d+: not valid YAML: Map keys must be unique; correct/);
    expect(config('name: *nothing\n')).toBe(
      `${mine}: not valid YAML: Unresolved alias (the anchor must be set before the alias): nothing`,
    );
    expect(config('name: x\n---\nname: y\n')).toBe(`${mine}:2: not valid YAML: a second document begins; keep one`);
  });

  it('that is empty', () => {
    expect(config('')).toBe(`${mine}: holds no settings; give a map of settings`);
  });

  it('with unknown keys, at the top and within', () => {
    expect(config(`${DEFAULT}\ncolour: red\n`)).toBe(
      `${mine}:${DEFAULT.split('\n').length + 1}: unknown key colour${EVERY_SETTING}`,
    );
    expect(config(DEFAULT.replace('steps: 40', 'stepz: 40'))).toBe(
      `${mine}:${lineOf('  steps: 40')}: unknown key train.stepz; did you mean steps?${EVERY_SETTING}`,
    );
  });

  it('with a value of another type, and one that is missing', () => {
    expect(config(DEFAULT.replace('steps: 40', 'steps: many'))).toBe(
      `${mine}:${lineOf('  steps: 40')}: train.steps: give a whole number, not "many"${EVERY_SETTING}`,
    );
    expect(config(DEFAULT.replace(/^ {2}solver: data.*\n/m, ''))).toBe(
      `${mine}:${lineOf('models:')}: models.solver: missing; give a checkpoint folder, or solver.endpoint${EVERY_SETTING}`,
    );
  });
});

describe('--set', () => {
  it.each([
    ['nonsense', 'write key=value, for example --set train.steps=20'],
    ['=3', 'write key=value, for example --set train.steps=20'],
    ['train.steps={a', 'not valid YAML: Flow map must end with a }'],
    ['train.steps.x=3', 'there is no setting train.steps.x'],
    ['colour=red', `unknown key colour${EVERY_SETTING}`],
    ['train.stepz=3', `unknown key train.stepz; did you mean steps?${EVERY_SETTING}`],
    ['train.steps=many', `train.steps: give a whole number, not "many"${EVERY_SETTING}`],
    ['train.invalidPenalty=-1', 'the invalid penalty (-1) must be below the smallest reward of a valid task (-2.5)'],
    ['engine.memory=24PB', 'engine.memory: give auto, fast, small, or a size with its unit, such as 24GB or 24GiB'],
    ['train.batch=1', `train.batch: give a number of at least 2, not 1${EVERY_SETTING}`],
    ['band={min: 4, max: 3, of: 8}', 'band: needs min ≤ max ≤ of, with a count outside the band'],
    ['band={min: 0, max: 8, of: 8}', 'band: needs min ≤ max ≤ of, with a count outside the band'],
    ['arms={}', 'arms: name at least one arm'],
    [
      'arms.propel.reward=praise',
      'arms.propel.reward: give none, probe, solver, valid, random or length, not "praise"',
    ],
    ['arms.sil={reward: solver, trials: 0}', 'arms.sil.trials: give a number above 0, not 0'],
    ['arms.sil={reward: solver, adversarial: {every: 5}}', 'unknown key arms.sil.adversarial'],
    ['arms.sil={reward: solver, train: {invalidPenalty: 0}}', 'must be below the smallest reward of a valid task (0)'],
    ['arms.propel.train={rewardClip: 3}', 'must be below the smallest reward of a valid task (-3)'],
    ['arms.propel.train={stepz: 3}', 'unknown key arms.propel.train.stepz'],
    ['arms.propel.adversarial={every: 0}', 'arms.propel.adversarial.every: give a number above 0, not 0'],
    ['arms.propel.crowding={by: topic}', 'arms.propel.crowding.weight: missing; give a number'],
    ['arms.sil={reward: solver, crowding: {by: activations, weight: 1}}', 'reward solver has none; give topic'],
    ['arms={Mine: {reward: none}}', 'arms.Mine: write the name in lower-case letters, digits and dashes'],
  ])('%s', (override, fault) => {
    expect(label('--set', override)).toMatch(new RegExp(`^propel: --set ${escape(`${override}: `)}.*${escape(fault)}`));
  });
});

const escape = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);

describe('topic rules', () => {
  const advice = '; give a file of topic rules such as data/topics/code-2.json';

  it('that do not exist, and that are none', () => {
    expect(label('--set', 'domain.topics=nowhere.json')).toBe(
      `propel: domain.topics nowhere.json does not exist; give a path from the working folder or from ${PACKAGE}`,
    );
    write('mine.json', '{"version": "mine", "rules": [{"topic": "loops", "node": ["For"]}], "otherwise": "rest"}');
    expect(label('--set', 'domain.topics=mine.json')).toBe(
      `propel: ${join(folder, 'mine.json')}: rules.0: unknown key node; did you mean nodes?${advice}`,
    );
  });
});

describe('a model', () => {
  /** A copy of the generator, changed. */
  function changedModel(name: string, change: (folder: string) => void): string {
    const model = join(folder, name);
    cpSync(join(PACKAGE, 'data', 'micro-world', 'generator'), model, { recursive: true });
    change(model);
    return model;
  }
  const editConfig =
    (edit: (config: Record<string, unknown>) => void): ((model: string) => void) =>
    (model) => {
      const file = join(model, 'config.json');
      const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
      edit(config);
      writeFileSync(file, JSON.stringify(config));
    };
  const weightsOf = (model: string): string => join(model, 'model.safetensors');

  it('whose folder does not exist', () => {
    expect(label('--set', 'models.solver=nowhere')).toBe(
      `propel: models.solver nowhere does not exist; give a path from the working folder or from ${PACKAGE}, or a hub id such as Qwen/Qwen2.5-3B-Instruct`,
    );
  });

  it.each<[string, (model: string) => void, RegExp]>([
    ['no config.json', (m) => rmSync(join(m, 'config.json')), /\/config\.json cannot be read \(ENOENT\)/],
    ['config.json cut off', (m) => truncateSync(join(m, 'config.json'), 40), /\/config\.json is not valid JSON: /],
    [
      'another architecture',
      editConfig((c) => (c['model_type'] = 'gpt2')),
      /\/config\.json: model_type 'gpt2' is not supported; supported are llama, mistral, qwen2, qwen3, phi3/,
    ],
    ['no weights', (m) => rmSync(weightsOf(m)), /\/model\.safetensors cannot be read \(ENOENT\)/],
    [
      'weights cut off',
      (m) => truncateSync(weightsOf(m), statSync(weightsOf(m)).size / 2),
      /\/model\.safetensors is not a usable safetensors file: tensor .* the file is cut off/,
    ],
    ['weights cut off at once', (m) => truncateSync(weightsOf(m), 4), /shorter than its 8-byte length field/],
    [
      'a header that is not JSON',
      (m) => {
        const bytes = readFileSync(weightsOf(m));
        bytes.fill('x', 8, 16);
        writeFileSync(weightsOf(m), bytes);
      },
      /\/model\.safetensors is not a usable safetensors file: its header is not JSON/,
    ],
    [
      'a tensor missing',
      (m) => {
        const tensors = readTensors(weightsOf(m));
        tensors.delete('model.norm.weight');
        writeTensors(weightsOf(m), tensors);
      },
      /\/model\.safetensors has no tensor 'model\.norm\.weight', which config\.json calls for/,
    ],
    [
      'weights of another shape',
      editConfig((c) => (c['intermediate_size'] = 8)),
      /\/model\.safetensors: 'model\.layers\.0\.mlp\.gate_proj\.weight' has shape \[\d+,\d+\], config\.json calls for \[8,\d+\]/,
    ],
    ['no tokenizer', (m) => rmSync(join(m, 'tokenizer.json')), /\/tokenizer\.json is missing/],
    ['a tokenizer cut off', (m) => truncateSync(join(m, 'tokenizer.json'), 99), /\/tokenizer\.json is not valid JSON/],
    [
      'no such tokenizer',
      (m) => writeFileSync(join(m, 'tokenizer.json'), '{}'),
      /\/tokenizer\.json: model: .*; this is not the tokenizer\.json of a fast tokenizer/,
    ],
    [
      'the tokenizer of a model with more tokens',
      (m) => {
        const file = join(m, 'tokenizer.json');
        const tokenizer = JSON.parse(readFileSync(file, 'utf8')) as { model: { vocab: Record<string, number> } };
        tokenizer.model.vocab['propel'] = 4000;
        writeFileSync(file, JSON.stringify(tokenizer));
      },
      /: tokenizer\.json has 4001 tokens, config\.json says \d+: the tokenizer belongs to another model/,
    ],
  ])('with %s', (what, change, fault) => {
    const model = changedModel(what, change);
    const line = label('--set', `models.solver=${JSON.stringify(model)}`);
    expect(line).toMatch(fault);
    expect(line).toContain(`propel: models.solver: ${model}`);
    expect(line).toMatch(/; give the folder of a whole checkpoint, or fetch it again$/);
  });

  it('that is an arm’s own: it is checked as the run’s is', () => {
    expect(label('--set', 'arms.propel.policy=nowhere')).toBe(
      `propel: arms.propel.policy nowhere does not exist; give a path from the working folder or from ${PACKAGE}, or a hub id such as Qwen/Qwen2.5-3B-Instruct`,
    );
    const cut = changedModel('own-cut', (m) => truncateSync(weightsOf(m), 4));
    expect(label('--set', `arms.base.policy=${cut}`)).toMatch(
      /^propel: arms\.base\.policy: .*own-cut\/model\.safetensors is not a usable .*; give the folder of a whole checkpoint/,
    );
    const short = changedModel(
      'own-short',
      editConfig((c) => (c['max_position_embeddings'] = 60)),
    );
    expect(label('--set', `arms.propel.policy=${short}`)).toBe(
      'propel: arms.propel.policy: policy.maxNewTokens: 80 tokens and a prompt of 10 are more than the 60 positions of own-short; lower it',
    );
  });

  it('that lacks what the settings ask of it', () => {
    expect(label(...sets({ 'policy.stops': ['#', '\n'] }))).toBe(
      'propel: policy.stops.1: "\\n" stands within every code_o task in doctest notation, and would cut it there; leave it out: the notation tells where a task ends',
    );
    expect(label(...sets({ 'policy.chat': 'always' }))).toBe(
      'propel: policy.chat: always, but generator has no chat template; give auto or never',
    );
    expect(label(...sets({ 'probe.features': [[{ layer: 99, pooling: 'mean' }]] }))).toMatch(
      /^propel: probe\.features\.0\.0\.layer: generator has no layer 99; give 0, the embeddings, to \d, its last layer$/,
    );
    expect(label(...sets({ 'solver.maxNewTokens': 100_000 }))).toMatch(
      /^propel: solver\.maxNewTokens: 100000 tokens and a prompt are more than the \d+ positions of solver; lower it$/,
    );
    expect(label(...sets({ 'policy.maxNewTokens': 80, 'solver.maxNewTokens': 180 }))).toMatch(
      /^propel: solver\.maxNewTokens: a task of policy\.maxNewTokens 80 and 180 more are 260 tokens, solver has \d+ positions; lower either$/,
    );
  });
});

describe('a file of tasks', () => {
  const ROW = JSON.stringify({ snippet: 'def f(x):\n    return x', input: '1', output: '1', imports: [] });

  it.each([
    ['cut off', `${ROW}\n${ROW.slice(0, 30)}`, 'line 2: the file ends in the middle of this row; fetch the file again'],
    ['not JSON', `${ROW}\nf(x)\n`, 'line 2: not valid JSON; each line must hold one JSON object'],
    ['empty', '', 'holds no rows; give a file with one JSON object a line'],
  ])('that is %s', (_, text, fault) => {
    const line = refusal('check', '--json', write('tasks.jsonl', text));
    expect(line).toMatch(/^propel: tasks\.jsonl/);
    expect(line).toContain(fault);
  });
});

describe('a file or folder on the way', () => {
  /** Root may read everything: as root the command runs as somebody else, where that one may run it. */
  const uid = process.getuid?.() === 0 ? 65_534 : undefined;
  const asOther = (args: readonly string[]) =>
    spawnSync(process.execPath, [MAIN, ...args], { cwd: folder, encoding: 'utf8', ...(uid !== undefined && { uid }) });
  chmodSync(folder, 0o755);
  const canRun = asOther(['--version']).status === 0;

  it.skipIf(!canRun)(`that may not be read${canRun ? '' : ' (NOT RUN: nobody may run the command)'}`, () => {
    for (const name of ['closed.yaml', 'closed.jsonl', 'closed.json']) chmodSync(join(folder, write(name, '{}')), 0);
    mkdirSync(join(folder, 'closed'), { mode: 0 });
    for (const [args, line] of [
      [['label', 'closed.yaml'], `${folder}/closed.yaml may not be read, by its permissions; give a YAML file`],
      [
        ['check', 'closed.jsonl'],
        'closed.jsonl may not be read, by its permissions; give the path of a JSON Lines file',
      ],
      [
        ['label', '--from', 'closed.jsonl'],
        'closed.jsonl may not be read, by its permissions; give the path of a JSON',
      ],
      [
        ['label', '--set', 'domain.topics=closed.json'],
        `${folder}/closed.json: may not be read, by its permissions; give`,
      ],
      [['report', 'closed'], 'closed/propel.db may not be read, by its permissions'],
      [['sample', 'closed'], 'closed/propel.db may not be read, by its permissions'],
      [['evaluate', '--out', 'closed'], 'closed/propel.db may not be read, by its permissions'],
      [['label', 'closed/mine.yaml'], `${folder}/closed/mine.yaml may not be read, by its permissions`],
    ] as const) {
      const { status, stdout, stderr } = asOther(args);
      expect(errorLine({ code: status, stdout, stderr })).toContain(`propel: ${line}`);
      expect(status).toBe(2);
    }
  });

  it('that is a file where a folder should be', () => {
    write('file', '');
    expect(refusal('check', 'file/tasks.jsonl')).toBe(
      'propel: file/tasks.jsonl does not exist, a file stands on its way; give the path of a JSON Lines file',
    );
    for (const args of [
      ['report', 'file'],
      ['sample', 'file'],
      ['export', 'file', '--arm', 'a', '--out', 'x'],
      ['plan', '--like', 'file'],
    ]) {
      expect(refusal(...args)).toBe('propel: file is a file; give the folder of a run');
    }
  });

  it('that is a folder where a file should be', () => {
    expect(refusal('label', '--set', 'domain.topics=.')).toMatch(/: is a folder; give a file of topic rules/);
    expect(refusal('check', '.')).toBe('propel: . is a folder; give the path of a JSON Lines file');
    expect(refusal('plan', '--model-config', 'data/micro-world/solver=/')).toBe(
      'propel: /config.json does not exist; give a config.json',
    );
  });
});

describe('a run folder', () => {
  it('that is a file, or lies within one', () => {
    write('file', '');
    for (const out of ['file', 'file/run']) {
      expect(refusal('label', '--json', '--out', out)).toBe(
        `propel: ${out} cannot be a run folder, a file stands in its way; choose another with --out`,
      );
    }
  });

  it('that no start begins in: an endpoint, a sandbox or a provider that is not there', () => {
    const endpoint = [
      'models.solver=null',
      'solver.endpoint=http://localhost:1/v1',
      'solver.model=m',
      'solver.retries=0',
    ];
    for (const [settings, said] of [
      [endpoint, /solver\.endpoint: http:\/\/localhost:1\/v1 cannot be reached/],
      [['engine.provider=dml'], /no execution provider is usable/],
    ] as const) {
      const before = contentsOf(folder);
      const ended = propelIn(folder, [
        'label',
        '--json',
        '--out',
        'a/b/c',
        ...settings.flatMap((set) => ['--set', set]),
      ]);
      expect(errorLine(ended)).toMatch(said);
      expect(ended.code).not.toBe(0);
      expect(contentsOf(folder)).toEqual(before);
    }
    // What was there before stays.
    mkdirSync(join(folder, 'mine'));
    writeFileSync(join(folder, 'mine', 'notes'), '');
    propelIn(folder, ['label', '--out', 'mine/run', '--set', 'engine.provider=dml']);
    expect(contentsOf(join(folder, 'mine'))).toEqual(['notes']);
  });

  it('that holds no run', () => {
    mkdirSync(join(folder, 'empty'));
    for (const command of ['report', 'sample']) {
      expect(refusal(command, '--json', 'empty')).toBe(
        'propel: no run in empty: propel.db is missing; start one with propel run or propel label',
      );
    }
    for (const command of ['train-probe', 'train-generator', 'evaluate']) {
      expect(refusal(command, '--json', '--out', 'empty')).toBe(
        "propel: empty holds no run yet: run 'propel label' first, or give the run's folder with --out",
      );
    }
  });

  it('whose store was only just being made', () => {
    mkdirSync(join(folder, 'begun'));
    writeFileSync(join(folder, 'begun', 'propel.db'), '');
    expect(refusal('report', '--json', 'begun')).toBe(
      'propel: no run in begun yet: propel.db is empty; start one with propel run or propel label',
    );
  });

  it('whose store is not one', () => {
    mkdirSync(join(folder, 'foreign'));
    writeFileSync(
      join(folder, 'foreign', 'propel.db'),
      'not a database, but long enough to be looked at as if it were '.repeat(99),
    );
    for (const args of [
      ['label', '--out', 'foreign'],
      ['report', 'foreign'],
      ['sample', 'foreign'],
    ]) {
      expect(refusal(...args, '--json')).toBe(
        'propel: foreign/propel.db is not a run store; choose another folder with --out, or start over with --fresh',
      );
    }
  });
});

describe('a run, phase by phase', () => {
  const ARMS = { base: { reward: 'none' }, propel: { reward: 'probe' } };
  const SMALL = sets({
    band: { min: 1, max: 7, of: 8 },
    'label.tasks': 110,
    'label.batch': 64,
    'probe.features': [[{ layer: 1, pooling: 'mean' }]],
    'probe.l2': [0.1],
    'train.steps': 1,
    'train.batch': 16,
    arms: ARMS,
    'evaluate.generations': 16,
    'evaluate.batch': 16,
    'evaluate.rescoreEvery': 0,
  });
  const phase = (command: string, out: string, ...args: string[]): string =>
    refusal(command, '--json', '--out', out, ...SMALL, ...args);

  function work(command: string): unknown {
    const { code, stdout, stderr } = propelIn(folder, [command, '--json', '--out', 'run', ...SMALL]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringMatching(/^propel: /m) });
    return JSON.parse(stdout);
  }

  /** The run as it was after each phase. */
  beforeAll(() => {
    for (const command of ['label', 'train-probe', 'train-generator']) {
      work(command);
      cpSync(join(folder, 'run'), join(folder, `after-${command}`), { recursive: true });
    }
  }, 120_000);

  /** A copy with one file changed. */
  function tampered(name: string, file: string, change: (file: string) => void): string {
    cpSync(join(folder, 'run'), join(folder, name), { recursive: true });
    change(join(folder, name, file));
    return name;
  }
  const flipLastByte = (file: string): void => {
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
  };

  it('names the phase that must come first', () => {
    expect(phase('train-generator', 'after-label')).toBe(
      "propel: arm propel needs a probe, which is not trained yet: run 'propel train-probe' first",
    );
    expect(phase('evaluate', 'after-train-probe')).toBe(
      "propel: arm propel is not trained yet: run 'propel train-generator' first",
    );
    expect(refusal('sample', 'after-train-probe', '--json', '--arm', 'propel')).toBe(
      "propel: arm propel is not trained yet: run 'propel train-generator' first",
    );
    expect(refusal('report', 'after-train-generator', '--json')).toBe(
      "propel: after-train-generator: no arm has been evaluated yet: run 'propel evaluate'",
    );
  });

  it('refuses other settings and another seed', () => {
    expect(phase('label', 'run', '--set', 'label.tasks=120', '--seed', '7')).toBe(
      'propel: run holds a run with other settings (seed 0 → 7, label.tasks 110 → 120); give the settings it was begun with, start over with --fresh, or choose another folder with --out',
    );
  });

  it('names the narrowest command that takes other settings: what is paid for stays', () => {
    const startOver = (args: readonly string[]): string => phase('run', 'run', ...args);
    const MORE_PROBES = sets({ arms: { ...ARMS, propel: { reward: 'probe', probes: 2 } } });
    const or = 'or choose another folder with --out';
    expect(startOver(sets({ 'train.steps': 2, arms: { ...ARMS, other: { reward: 'valid' } } }))).toBe(
      `propel: run holds a run with other settings (train.steps 1 → 2, arms.other none → {"reward":"valid"}); give the settings it was begun with, start over with 'propel train-generator --fresh', which keeps the labels and the probes, ${or}`,
    );
    expect(startOver(MORE_PROBES)).toMatch(
      /\(arms\.propel\.probes 1 → 2\); .*, start over with 'propel train-probe --fresh', which keeps the labels, or/,
    );
    expect(startOver(['--set', 'probe.head=band', '--set', 'train.steps=2'])).toMatch(
      /\(probe\.head "counts" → "band", train\.steps 1 → 2\); .*'propel train-probe --fresh', which keeps the labels, or/,
    );
    expect(phase('train-generator', 'run', '--fresh', ...MORE_PROBES)).toMatch(
      /\(arms\.propel\.probes 1 → 2\); start over with 'propel train-probe --fresh', which keeps the labels, or/,
    );
  });

  it('starts no phase over with other settings of an earlier one', () => {
    expect(phase('evaluate', 'run', '--fresh', '--set', 'train.steps=9')).toBe(
      "propel: run holds a run whose earlier phases had other settings (train.steps 1 → 9); start over with 'propel train-generator --fresh', which keeps the labels and the probes, or choose another folder with --out",
    );
  });

  it('starts nothing over that could not begin again', () => {
    expect(phase('label', 'run', '--fresh', '--set', 'models.solver=nowhere')).toMatch(
      /^propel: models\.solver nowhere does/,
    );
    expect(phase('label', 'run', '--fresh', '--set', 'policy.stops=["\\n"]')).toMatch(/^propel: policy\.stops\.0: /);
  });

  it('refuses an arm that is none', () => {
    for (const arm of ['none', 'constructor']) {
      expect(refusal('sample', 'run', '--arm', arm)).toBe(`propel: --arm ${arm}: the run's arms are base, propel`);
    }
  });

  it('refuses a damaged store', () => {
    const out = tampered('damaged', 'propel.db', (file) => truncateSync(file, 30_000));
    for (const args of [
      ['label', '--out', out, ...SMALL],
      ['report', out],
    ]) {
      expect(refusal(...args, '--json')).toBe(
        'propel: damaged/propel.db is damaged; start over with --fresh, or choose another folder with --out',
      );
    }
  });

  it('refuses a probe that is not the one it trained', () => {
    const weights = 'probes/probe-0.safetensors';
    cpSync(join(folder, 'after-train-probe'), join(folder, 'cut'), { recursive: true });
    truncateSync(join(folder, 'cut', weights), 100);
    expect(phase('train-generator', 'cut')).toMatch(
      /^propel: cut\/probes\/probe-0\.safetensors is not a usable safeten/,
    );
    cpSync(join(folder, 'after-train-probe'), join(folder, 'other'), { recursive: true });
    flipLastByte(join(folder, 'other', weights));
    expect(phase('train-generator', 'other')).toMatch(
      /^propel: other\/probes\/probe-0\.safetensors is not the file that .*probe-0\.json was written for; train the probe/,
    );
  });

  it('refuses an adapter that is not the one it wrote', () => {
    const adapter = 'checkpoints/propel/step-000001/adapter_model.safetensors';
    expect(refusal('sample', tampered('adapter', adapter, flipLastByte), '--json', '--arm', 'propel')).toBe(
      `propel: adapter/${adapter} is not the file that the run wrote; put that back, or start over with --fresh`,
    );
    expect(refusal('sample', tampered('gone', adapter, rmSync), '--json', '--arm', 'propel')).toBe(
      `propel: gone/${adapter}, which the run's store names, cannot be read; put it back, or start over with --fresh`,
    );
  });

  it('goes on to its end where nothing was changed', () => {
    expect(work('run')).toEqual(JSON.parse(readFileSync(join(folder, 'run', 'results.json'), 'utf8')));
  });
});
