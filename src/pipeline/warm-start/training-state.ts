/** What a warm start that was broken off goes on from: a folder beside the one that it will write, gone when that is there. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { UserError } from '../../errors.js';
import type { AdapterLayout } from '../../lm/adapter.js';
import { parseFields, readJsonFile } from '../../lm/json-file.js';
import type { TrainerState } from '../../lm/trainer.js';
import { readTrainingCheckpoint, writeTrainingCheckpoint } from '../../rl/checkpoint.js';
import { makeFolder, writeFileAtomic } from '../../store/files.js';
import { lockRunFolder } from '../../store/lock.js';
import type { RunLock } from '../../store/lock.js';

const STATE_FILE = 'state.json';
const ADVICE = 'remove the folder to begin anew';

const schema = z.strictObject({
  /** What is trained, on what and how; another warm start does not go on from it. */
  identity: z.string(),
  /** Nats and tokens of each held-out document before training. */
  before: z.array(z.strictObject({ nats: z.number(), tokens: z.int() })),
  /** Updates done; their checkpoint is the folder of that number. */
  update: z.int().min(0),
  seconds: z.number().min(0),
});
export type SavedState = z.infer<typeof schema>;

/** The folder of the state, locked for this process. */
export class TrainingFolder {
  readonly folder: string;
  readonly #lock: RunLock;

  /** @throws RunLockedError while another process works in it */
  constructor(target: string) {
    this.folder = `${target}.training`;
    makeFolder(this.folder);
    this.#lock = lockRunFolder(this.folder);
  }

  /** @throws UserError when what is there belongs to another warm start, or is damaged */
  read(identity: string): SavedState | null {
    const file = join(this.folder, STATE_FILE);
    if (!existsSync(file)) return null;
    const saved = parseFields(schema, readJsonFile(file, ADVICE), file, ADVICE);
    if (saved.identity === identity) return saved;
    throw new UserError(
      `${this.folder} holds another warm start that was broken off: its model, documents or settings were others; ${ADVICE}, or give another folder with --out`,
    );
  }

  /** Values and moments after so many updates. @throws UserError when a file is missing, corrupt or not the one that was written */
  trainerState(update: number): TrainerState {
    try {
      return readTrainingCheckpoint(this.checkpoint(update));
    } catch (cause) {
      if (!(cause instanceof UserError)) throw cause;
      throw new UserError(`${cause.message}; ${ADVICE}`, { cause });
    }
  }

  checkpoint(update: number): string {
    return join(this.folder, `update-${update}`);
  }

  /** The checkpoint first, then the file that names it; the one before goes last. A kill at any moment leaves one of the two whole. */
  save(saved: SavedState, state: TrainerState, layout: AdapterLayout, base: string): void {
    const kept = this.checkpoint(saved.update);
    rmSync(kept, { recursive: true, force: true });
    writeTrainingCheckpoint(kept, state, layout, base);
    writeFileAtomic(join(this.folder, STATE_FILE), `${JSON.stringify(saved)}\n`);
    for (const name of readdirSync(this.folder)) {
      const path = join(this.folder, name);
      if (name.startsWith('update-') && path !== kept) rmSync(path, { recursive: true, force: true });
    }
  }

  /** A text that is made once: what was kept of it, else what `make` gives. */
  async kept(name: string, make: () => Promise<string>): Promise<string> {
    const file = join(this.folder, name);
    if (existsSync(file)) return readFileSync(file, 'utf8');
    const made = await make();
    writeFileAtomic(file, made);
    return made;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  close(): void {
    this.#lock.release();
  }
}
