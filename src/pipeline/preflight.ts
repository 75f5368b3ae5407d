/** What can be told before any work: whether the models' files are whole, belong together, and have what the settings ask of them, and whether all of it fits. */
import { createCodeDomain, readTopicRules } from '../domain/azr/index.js';
import type { CodeTask } from '../domain/azr/index.js';
import type { Domain } from '../domain/domain.js';
import { UserError } from '../errors.js';
import { readAdapter } from '../lm/adapter-folder.js';
import { factorShapes, TARGET_MODULES, targetsOf } from '../lm/adapter.js';
import type { Adapter, AdapterLayout } from '../lm/adapter.js';
import type { DecoderConfig } from '../lm/config.js';
import { modelName } from '../lm/hub/cache.js';
import { openModelFiles } from '../lm/language-model.js';
import type { ModelFiles } from '../lm/language-model.js';
import type { ChatSetting } from '../lm/tokenizer.js';
import { largest } from '../metrics/extremes.js';
import { armTrain, isTrained } from './arm-config.js';
import type { RewardedArm } from './arm-config.js';
import { chatOf } from './chat.js';
import type { Config } from './config.js';
import { checkMemory } from './memory-check.js';
import { modelFolders, policySetting } from './model-folders.js';
import { findFile } from './paths.js';
import { sampleTask } from './plan-rates.js';
import { answerRefusal, writingRefusal } from './positions.js';
import type { Positions } from './positions.js';
import type { TrainSettings } from './train-config.js';

/**
 * Check the models against the configuration, before a run folder is opened and before anything is computed.
 * @throws UserError naming the file or the setting
 */
export async function checkModels(config: Config): Promise<void> {
  const { armPolicies, adapters, ...folders } = modelFolders(config);
  const domain = createCodeDomain(config.domain, readTopicRules(findFile(config.domain.topics, 'domain.topics')));
  const chat = { policy: chatOf(config.policy, domain), solver: chatOf(config.solver, domain) };
  checkStops(config, domain);
  const promptTokens = promptTokensOf(config, domain, chat.policy);
  const opened = new Map<string, ModelFiles>();
  const open = async (setting: string, folder: string): Promise<ModelFiles> => {
    const files = opened.get(folder) ?? (await openModel(setting, folder));
    opened.set(folder, files);
    return files;
  };
  const policy = await open('models.policy', folders.policy);
  const reference = await open('models.reference', folders.reference);
  checkChat('policy', chat.policy, folders.policy, policy);
  checkSampling('policy', config.policy, promptTokens(policy), folders.policy, policy);
  if (folders.solver !== null) {
    const solver = await open('models.solver', folders.solver);
    checkChat('solver', chat.solver, folders.solver, solver);
    checkSampling('solver', config.solver, 1, folders.solver, solver);
    checkSolverRoom(config, solver, folders.solver, chat.solver);
  }
  checkLayers(config.probe.features, folders.reference, reference.config.layers);
  for (const [arm, folder] of armPolicies) {
    const own = await open(policySetting(arm), folder);
    checkChat('policy', chat.policy, folder, own, `${policySetting(arm)}: `);
    checkSampling('policy', config.policy, promptTokens(own), folder, own, `${policySetting(arm)}: `);
  }
  const adapterOn = await openAdapters(adapters, async (setting) => {
    const roles: Readonly<Record<string, string | null>> = {
      'models.policy': folders.policy,
      'models.reference': folders.reference,
      'models.solver': folders.solver,
    };
    const arm = [...armPolicies].find(([name]) => policySetting(name) === setting);
    return (await open(setting, arm?.[1] ?? roles[setting]!)).config;
  });
  for (const [arm, settings] of Object.entries(config.arms)) {
    if (!isTrained(settings)) continue;
    const own = armPolicies.get(arm);
    const setting = own === undefined ? 'models.policy' : policySetting(arm);
    const train = armTrain(config.train, settings);
    const adapter = adapterOn.get(setting);
    const files = await open(policySetting(arm), own ?? folders.policy);
    if (adapter) checkContinued(train, adapter.layout, files.config, setting);
    else checkTargets(train, files, targetsSetting(arm, settings));
  }
  await checkMemory(config);
}

async function openModel(setting: string, folder: string): Promise<ModelFiles> {
  try {
    return await openModelFiles(folder);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    const advice = 'give the folder of a whole checkpoint, or fetch it again';
    throw new UserError(`${setting}: ${cause.message}; ${advice}`, { cause });
  }
}

/** Setting → the adapter on the model that it names. @throws UserError for one that is damaged or another model's */
async function openAdapters(
  folders: Readonly<Record<string, string>>,
  configOf: (setting: string) => Promise<DecoderConfig>,
): Promise<Map<string, Adapter>> {
  const adapters = new Map<string, Adapter>();
  for (const [setting, folder] of Object.entries(folders)) {
    try {
      adapters.set(setting, readAdapter(folder, await configOf(setting)));
    } catch (cause) {
      if (!(cause instanceof UserError)) throw cause;
      throw new UserError(`${setting}.adapter: ${cause.message}`, { cause });
    }
  }
  return adapters;
}

/** An adapter that training goes on with has its own rank and modules: the settings, by which all is planned, must say the same. */
function checkContinued({ lora }: TrainSettings, layout: AdapterLayout, config: DecoderConfig, setting: string): void {
  const targets = targetsOf(config, layout).join(', ');
  const asked = new Set<string>(lora.targets);
  const isSame = lora.rank === layout.rank && targets === TARGET_MODULES.filter((name) => asked.has(name)).join(', ');
  if (isSame) return;
  throw new UserError(
    `train.lora: the adapter of ${setting}, which training goes on with, has rank ${layout.rank} and the targets ${targets}; ` +
      `set train.lora.rank: ${layout.rank} and train.lora.targets: [${targets}] (alpha is the adapter's own, whatever is set)`,
  );
}

/** Tokens of the longest prompt that a generator gets. */
function promptTokensOf({ seed }: Config, domain: Domain<CodeTask>, chat: ChatSetting): (files: ModelFiles) => number {
  const prompts = domain.kinds.map((kind) => domain.prompt(kind, seed));
  return ({ tokenizer }) => largest(prompts.map((prompt) => tokenizer.question(prompt, chat).length));
}

function checkChat(role: 'policy' | 'solver', chat: ChatSetting, folder: string, files: ModelFiles, whose = ''): void {
  if (chat !== 'always' || files.tokenizer.hasChat) return;
  throw new UserError(
    `${whose}${role}.chat: always, but ${modelName(folder)} has no chat template; give auto or never`,
  );
}

/** A stop that the notation itself says would cut every task. */
function checkStops({ domain: settings, policy }: Config, domain: Domain<CodeTask>): void {
  const { inputs, shown } = settings.induction;
  for (const [i, stop] of policy.stops.entries()) {
    const type = settings.types.find((kind) =>
      domain
        .render(sampleTask(kind, inputs, shown))
        .slice(0, -1)
        .includes(stop),
    );
    if (type === undefined) continue;
    throw new UserError(
      `policy.stops.${i}: ${JSON.stringify(stop)} stands within every ${type} task in ${settings.notation} notation, and would cut it there; leave it out: the notation tells where a task ends`,
    );
  }
}

/** What may be written fits into the model's positions beside its prompt. */
function checkSampling(
  role: 'policy' | 'solver',
  settings: Pick<Config['policy'], 'maxNewTokens'>,
  promptTokens: number,
  folder: string,
  files: ModelFiles,
  whose = '',
): void {
  const refusal = writingRefusal(role, settings.maxNewTokens, promptTokens, positionsOf(folder, files));
  if (refusal !== null) throw new UserError(`${whose}${refusal}`);
}

function checkSolverRoom(config: Config, solver: ModelFiles, folder: string, chat: ChatSetting): void {
  const around = solver.tokenizer.question('', chat).length;
  const refusal = answerRefusal(config, around, positionsOf(folder, solver));
  if (refusal !== null) throw new UserError(refusal);
}

function positionsOf(folder: string, { config }: ModelFiles): Positions {
  return { name: modelName(folder), maxPositions: config.maxPositions };
}

/** Every module that is to be adapted is one of the generator's own. */
function checkTargets({ lora }: TrainSettings, { config }: ModelFiles, setting: string): void {
  try {
    factorShapes(config, lora);
  } catch (cause) {
    if (!(cause instanceof UserError)) throw cause;
    throw new UserError(`${setting}: ${cause.message}`, { cause });
  }
}

/** Where the modules that an arm adapts are named: in the arm itself, or in the section. */
function targetsSetting(arm: string, { train }: RewardedArm): string {
  return train?.lora?.targets === undefined ? 'train.lora.targets' : `arms.${arm}.train.lora.targets`;
}

function checkLayers(features: Config['probe']['features'], folder: string, layers: number): void {
  for (const [i, spec] of features.entries()) {
    for (const [j, { layer }] of spec.entries()) {
      if (layer <= layers) continue;
      throw new UserError(
        `probe.features.${i}.${j}.layer: ${modelName(folder)} has no layer ${layer}; give 0, the embeddings, to ${layers}, its last layer`,
      );
    }
  }
}
