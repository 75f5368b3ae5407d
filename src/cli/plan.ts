/** `propel plan`: what a configuration will take, before any of it runs. */
import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import { plan } from '../pipeline/plan.js';
import type { Busy, Plan, PlanModel, PlanPhase } from '../pipeline/plan.js';
import type { PlanPrompt } from '../pipeline/plan-prompts.js';
import { memorySize, sizeText as size } from '../pipeline/memory-size.js';
import type { ModelMemory, RunMemory, UseMemory } from '../pipeline/plan-memory.js';
import type { GivenConfigs } from '../pipeline/plan-models.js';
import { loadConfig } from '../pipeline/config-file.js';
import { count, duration, MISSING } from '../report/format.js';
import { alignColumns, printJson, printLines } from './output.js';
import { createProgress } from './progress.js';
import { DEFAULT_CONFIGURATION, setOption } from './run-options.js';

interface Flags {
  readonly memory?: number;
  readonly like?: string;
  readonly config: GivenConfigs;
  readonly modelConfig: GivenConfigs;
  readonly set: readonly string[];
  readonly json?: boolean;
}

const HELP = `
Nothing is downloaded, no model runs and nothing is written. Figures are estimates for the longest texts (memory) and for expected ones
(work and time).

Time rests on the last run on this machine with the same models and settings, numbers of steps, tasks and generations aside; where there
is none, on a few seconds' timing of products, operators and sandbox, of which other programs' time is taken out; with --like on a run of
the same models, engine and sandbox. What runs took is kept in PROPEL_CACHE (default: ~/.cache/propel; empty: nothing is kept).

A model that is not here is planned by the config.json that is given, else by its published sizes where they are known (Qwen2.5, Qwen3,
Llama 3.1 to 3.3, Mistral v0.3, SmolLM2); the plan says what it assumed.

Without --memory the budget is the configuration's, where engine.memory is a size; the batches of its models are then shown as the run
cuts them.

Examples:
  $ propel plan
  $ propel plan pipelines/azr-qwen2.5-3b.yaml --memory 80GiB
  $ propel plan my.yaml --config ./config.json
  $ propel plan my.yaml --config policy=./policy.json --config org/solver=./solver.json
  $ propel plan my.yaml --like runs/azr-micro --json | jq .totals`;

export function register(program: Command): void {
  program
    .command('plan')
    .description('show parameters, memory, work and time of a configuration before it runs')
    .argument('[configuration]', 'YAML file, from the working folder or the package', DEFAULT_CONFIGURATION)
    .option(
      '--memory <size>',
      'what the run may take, e.g. 24GiB or 80GB (default: engine.memory, where it is a size)',
      givenSize,
    )
    .option('--like <folder>', 'run folder whose rates, validity and lengths are taken')
    .addOption(configOption('--config'))
    .addOption(configOption('--model-config').hideHelp())
    .addOption(setOption())
    .option('--json', 'print one JSON document on standard output')
    .addHelpText('after', HELP)
    .action(async (configuration: string, { memory, like, config, modelConfig, set, json }: Flags) => {
      const planned = await plan({
        config: loadConfig(configuration, set),
        modelConfigs: new Map([...modelConfig, ...config]),
        memory: memory ?? null,
        like: like ?? null,
        progress: createProgress,
      });
      if (json) printJson(planned);
      else printLines(describe(planned));
    });
}

/** @param flag `--config`, or the name that it had in 0.1 */
function configOption(flag: string): Option {
  const what =
    'config.json of a model that is not here, by its name or role; without either, of all that are not; may be repeated';
  return new Option(`${flag} <[model=]file>`, what)
    .default(new Map<string | null, string>(), 'published sizes, where they are known')
    .argParser((value: string, all: GivenConfigs) => {
      const equals = value.indexOf('=');
      const [name, path] = equals < 0 ? [null, value] : [value.slice(0, equals), value.slice(equals + 1)];
      if (name === '' || path === '') throw new InvalidArgumentError('Give a file, or model=file.');
      return new Map([...all, [name, path]]);
    });
}

function givenSize(text: string): number {
  const bytes = memorySize(text);
  if (bytes === null) throw new InvalidArgumentError('Give a size above 0 with its unit, such as 80GiB or 24GB.');
  return bytes;
}

function describe({ name, models, prompts, expected, phases, totals, time, memory }: Plan): string[] {
  const { validity, taskTokens, answerTokens, promptTokens, questionTokens } = expected;
  const percents = [validity.label, validity.train, validity.evaluate].map((share) => `${Math.round(100 * share)}%`);
  return [
    `plan of ${name}`,
    '',
    ...models.flatMap((model, i) => [...describeModel(model), ...describeUses(memory.models[i]!, memory), '']),
    ...describeMemory(memory),
    '',
    ...prompts.flatMap(describePrompt),
    `Expected (${expected.basis}): valid ${percents.join(', ')} of label, train and evaluate; tokens of a task ${Math.round(taskTokens)}, of an answer ${Math.round(answerTokens)}, of a prompt ${promptTokens}, around a question ${questionTokens}`,
    '',
    ...alignColumns([
      ['  phase', 'generations', 'at most', 'solver trials', 'at most', 'tokens', 'time'],
      ...phases.map(phaseRow),
      [
        '  in all',
        ...[totals.generations, totals.generationsAtMost, totals.trials, totals.trialsAtMost].map((n) => count(n)),
        count(Math.round(allTokens(totals.tokens))),
        totals.seconds === null ? MISSING : duration(totals.seconds),
      ],
    ]),
    `Time by ${time.basis}${time.uncounted.length > 0 ? `; not counted: ${time.uncounted.join(', ')}` : ''}`,
    ...(time.busy === null ? [] : [describeBusy(time.busy)]),
  ];
}

/** Lines of a prompt that are shown from its beginning and its end: the form shows there, the rest is in `--json`. */
const SHOWN_LINES = { first: 6, last: 6 };

/** A text as it is may end in a line break, which shows as an empty line. */
function describePrompt({ type, tokens, text }: PlanPrompt): string[] {
  const lines = text.split('\n');
  const { first, last } = SHOWN_LINES;
  const left = lines.length - first - last;
  const shown = left > 1 ? [...lines.slice(0, first), `… ${left} lines …`, ...lines.slice(-last)] : lines;
  return [`Prompt of ${type}, ${count(tokens)} tokens:`, ...shown.map((line) => `  | ${line}`), ''];
}

function describeBusy({ when, what }: Busy): string {
  return when === 'now'
    ? `The machine is busy, ${what}: times are those of a quiet one, and a run takes longer while it stays so`
    : `The machine was busy during that run, ${what}: on a quiet one a run takes less`;
}

function allTokens(tokens: PlanPhase['tokens']): number {
  return Object.values(tokens).reduce((a, b) => a + b, 0);
}

function phaseRow({
  phase,
  arm,
  generations,
  generationsAtMost,
  trials,
  trialsAtMost,
  tokens,
  seconds,
}: PlanPhase): string[] {
  return [
    `  ${phase}${arm === '' ? '' : ` ${arm}`}`,
    ...[generations, generationsAtMost, trials, trialsAtMost].map((n) => count(n)),
    count(Math.round(allTokens(tokens))),
    seconds === null ? MISSING : duration(seconds),
  ];
}

function describeModel(model: PlanModel): string[] {
  const { name, settings, family, parameters, bytes, stored, assumed, layers, width, maxPositions, adapters, problem } =
    model;
  const head = `${settings.join(', ')}: ${name}`;
  if (parameters === null || bytes === null) return [head, `  ${problem ?? ''}`];
  const byType = Object.entries(bytes).map(([type, n]) => `${size(n)} as ${type}`);
  const here = assumed === null ? `stored as ${stored!.join(', ')}` : `its weights are not here: assumed ${assumed}`;
  const shape = `${layers} layers of width ${count(width!)}, ${count(maxPositions!)} positions`;
  return [
    head,
    `  ${family}, ${shape}, ${count(parameters)} parameters: ${byType.join(', ')}; ${here}`,
    ...Object.entries(adapters).map(([arm, n]) => `  adapter of arm ${arm}: ${count(n)} parameters`),
    ...model.refusals.map((refusal) => `  a run would be refused: ${refusal}`),
  ];
}

function describeUses(model: ModelMemory | null, { budget }: RunMemory): string[] {
  if (model === null) return [];
  const updates = model.uses.filter(({ use }) => use === 'update').length;
  const name = ({ use, arms }: UseMemory): string =>
    updates > 1 && arms.length > 0 ? `${use} of ${arms.join(', ')}` : use;
  return model.uses.map((use) => `  ${name(use)}: ${describeUse(use)}${budget === null ? '' : `; ${verdict(use)}`}`);
}

function describeUse({
  sequences,
  uncut,
  tokens,
  beyondPositions,
  weights,
  activations,
  cache,
  optimiser,
  gradients,
  total,
}: UseMemory): string {
  const parts: (readonly [string, number])[] = [
    ['weights', weights],
    ['activations', activations],
    ['cache', cache],
    ['optimiser', optimiser],
    ['gradients', gradients],
  ];
  const shown = parts.filter(([, bytes]) => bytes > 0).map(([what, bytes]) => `${what} ${size(bytes)}`);
  const cut = sequences < uncut ? `, cut from ${count(uncut)} by engine.memory` : '';
  const beyond = beyondPositions ? ', more than the model has positions' : '';
  return `${size(total)} for ${count(sequences)} ${sequences === 1 ? 'sequence' : 'sequences'} of ${count(tokens)} tokens${beyond} (${shown.join(', ')})${cut}`;
}

function verdict({ sequences, sequencesThatFit }: UseMemory): string {
  if (sequencesThatFit === null) return '';
  if (sequencesThatFit >= sequences) return 'fits';
  const would = sequencesThatFit === 0 ? '' : `: ${count(sequencesThatFit)} at once would`;
  return `does not fit beside all weights${would}`;
}

function describeMemory({
  models,
  process,
  resident,
  working,
  total,
  budget,
  fits,
  problem,
}: Plan['memory']): string[] {
  const parts = `process and sandbox ${size(process)}, weights of all graphs ${size(resident)}, largest use ${size(working)}`;
  const outcome = fits === null ? 'cannot be told' : fits ? 'fits' : 'does not fit';
  const what = models.includes(null) ? 'Memory without the models of which nothing is known' : 'Memory';
  return [
    `${what}: ${size(total)} (${parts})${budget === null ? '' : `; of ${size(budget)}: ${outcome}`}`,
    ...(problem === null ? [] : [`  ${problem}`]),
  ];
}
