/** A warm-started model's folder: a checkpoint or an adapter, how it ends, and a card that says what it was trained on. */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hubNameOf } from '../../lm/hub/cache.js';
import { readJsonFile } from '../../lm/json-file.js';
import { readAdapter, writeAdapter } from '../../lm/adapter-folder.js';
import { checkpointHash, openCheckpoint } from '../../lm/checkpoint.js';
import type { Tokenizer } from '../../lm/tokenizer.js';
import { writeFileAtomic } from '../../store/files.js';
import { filesOf, writeCheckpointFiles, writeFolder } from '../export.js';
import type { ExportedFile } from '../export.js';
import { versions } from '../versions.js';
import type { Versions } from '../versions.js';
import type { WarmStartRole } from './micro-world-documents.js';
import type { DocumentSource, HeldOutLoss, WarmStartSettings } from './settings.js';

/** What the card tells. */
export interface WarmStartFacts {
  readonly role: WarmStartRole;
  readonly source: DocumentSource;
  readonly documents: { readonly trained: number; readonly heldOut: number; readonly sha256: string };
  readonly notation: string;
  /** Whether prompts were a user's turn of the model's chat, or bare texts. */
  readonly asked: 'chat' | 'text';
  readonly settings: WarmStartSettings;
  readonly seed: number;
  readonly updates: number;
  readonly seconds: number;
  readonly before: HeldOutLoss;
  readonly after: HeldOutLoss;
  readonly provider: string;
  readonly dtype: string;
}

/** `propel warm-start --json`. */
export interface WarmStarted {
  readonly role: WarmStartRole;
  readonly kind: 'checkpoint' | 'adapter';
  readonly folder: string;
  /** What was trained: its hub id, or its folder. */
  readonly base: string;
  readonly baseHash: string;
  /** Of a checkpoint: what a run's record calls the model; null for an adapter. */
  readonly modelHash: string | null;
  readonly documents: WarmStartFacts['documents'];
  readonly heldOut: { readonly before: HeldOutLoss; readonly after: HeldOutLoss };
  readonly settings: WarmStartSettings;
  readonly seed: number;
  readonly updates: number;
  readonly seconds: number;
  readonly versions: Versions;
  readonly files: readonly ExportedFile[];
}

export interface WrittenModel {
  readonly target: string;
  readonly base: string;
  /** Folder of the adapter that was trained. */
  readonly checkpoint: string;
  readonly adapter: boolean;
  readonly tokenizer: Pick<Tokenizer, 'ends'>;
  readonly facts: WarmStartFacts;
}

/** Write the folder, which appears whole or not at all. */
export function writeWarmStarted({ target, base, checkpoint, adapter, tokenizer, facts }: WrittenModel): WarmStarted {
  const name = hubNameOf(base) ?? base;
  const result = {
    role: facts.role,
    kind: adapter ? ('adapter' as const) : ('checkpoint' as const),
    folder: target,
    base: name,
    baseHash: checkpointHash(base),
    documents: facts.documents,
    heldOut: { before: facts.before, after: facts.after },
    settings: facts.settings,
    seed: facts.seed,
    updates: facts.updates,
    seconds: facts.seconds,
    versions: versions(),
  };
  let modelHash: string | null = null;
  writeFolder(target, (to) => {
    if (adapter) {
      writeAdapter(to, readAdapter(checkpoint, openCheckpoint(base).config), name);
    } else {
      writeCheckpointFiles(base, checkpoint, to);
      writeEnds(base, to, tokenizer.ends);
      modelHash = checkpointHash(to);
    }
    writeFileAtomic(join(to, 'README.md'), card({ ...result, modelHash }, facts, basename(target)));
  });
  return { ...result, modelHash, files: filesOf(target) };
}

/** The tokens that end a text, where every other program looks for them. */
function writeEnds(base: string, to: string, ends: readonly number[]): void {
  const file = join(base, 'generation_config.json');
  const kept = existsSync(file) ? (readJsonFile(file, 'fetch it again') as Record<string, unknown>) : {};
  const eos_token_id = ends.length === 1 ? ends[0] : ends;
  writeFileAtomic(join(to, 'generation_config.json'), `${JSON.stringify({ ...kept, eos_token_id }, null, 2)}\n`);
}

type CardResult = Omit<WarmStarted, 'files'>;

function card(result: CardResult, facts: WarmStartFacts, title: string): string {
  const { kind, base, baseHash, modelHash, heldOut, settings } = result;
  const hub = base.includes('/') && !base.startsWith('/') ? base.split('@')[0]! : null;
  const rows = [
    ['trained from', `${hub ?? basename(base)}, sha256 \`${baseHash}\``],
    ...(modelHash === null ? [] : [['this checkpoint', `sha256 \`${modelHash}\``]]),
    ['role', facts.role === 'generator' ? 'writes tasks' : 'answers tasks'],
    [
      'documents',
      `${facts.documents.trained} trained on, ${facts.documents.heldOut} held out; ${sourceText(facts.source, facts.seed)}`,
    ],
    ['documents as tokens', `sha256 \`${facts.documents.sha256}\``],
    [
      'notation',
      `${facts.notation}; prompts are ${facts.asked === 'chat' ? 'a user’s turn of the chat template' : 'bare texts'}`,
    ],
    [
      'held-out loss',
      `${lossText(heldOut.before)} before, ${lossText(heldOut.after)} after, nats a token of the completions (95% interval over documents)`,
    ],
    [
      'training',
      `LoRA of rank ${settings.rank}, alpha ${settings.alpha}, on every linear map${kind === 'checkpoint' ? ', merged into the weights' : ''}; loss on the completion and its end token; ${result.updates} updates of ${settings.batch} documents, ${settings.passes} ${settings.passes === 1 ? 'pass' : 'passes'}; AdamW, peak learning rate ${settings.learningRate}, ${settings.warmUp} updates of warm-up, then a cosine to a twentieth`,
    ],
    ['seed', String(result.seed)],
    ['time', `${Math.round(result.seconds)} s on ${facts.provider} in ${facts.dtype}`],
    [
      'versions',
      Object.entries(result.versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(', '),
    ],
  ];
  return `---
${hub === null ? '' : `base_model: ${hub}\n`}${kind === 'adapter' ? 'library_name: peft\n' : ''}tags: [propel, code]
---
# ${title}

Fine-tuned by \`propel warm-start\`: supervised training on prompts and completions, before any reinforcement learning. It has the terms and
the limits of the model that it was trained from.

| | |
| --- | --- |
${rows.map(([what, text]) => `| ${what} | ${text} |`).join('\n')}
`;
}

function sourceText(source: DocumentSource, seed: number): string {
  return 'file' in source
    ? `of the file ${basename(source.file)}`
    : `sampled from the micro-world's grammar by seed ${seed}, their outputs computed in the sandbox`;
}

function lossText({ nats, interval: [low, high] }: HeldOutLoss): string {
  return `${nats.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
}
