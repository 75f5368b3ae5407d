/**
 * The run store's tables. Every row's key follows from the run's seed and its place in the work (phase, arm, batch, item), never from
 * the clock, so the same seed gives the same rows. Columns whose name ends in `_seconds` hold timings, and they alone may differ; `checksum` is
 * of the row's other columns.
 */

/** Stored in the file's `user_version`; raise it with every change below. */
export const SCHEMA_VERSION = 6;

/**
 * Versions before it that can still be read, though not gone on with: table → the columns that they lack, which read as null. Until 6 an
 * attempt's seed was its batch's, whatever the solver was given, and rows had no checksum.
 */
export const READABLE_VERSIONS: ReadonlyMap<number, Readonly<Record<string, readonly string[]>>> = new Map([
  [5, { attempts: ['draw'], solver_usage: ['cut_off', 'empty', 'refused'], steps: ['clipped_share'] }],
]);

/** What `user_version` is checked beside: a file of another program is not taken for an old run. ("PRPL") */
export const APPLICATION_ID = 0x5052504c;

export const SCHEMA = `
CREATE TABLE run (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  seed INTEGER NOT NULL,
  config TEXT NOT NULL,
  versions TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

-- A batch is the unit of work: its rows and this one are one transaction.
CREATE TABLE batches (
  phase TEXT NOT NULL,
  arm TEXT NOT NULL,
  batch INTEGER NOT NULL,
  elapsed_seconds REAL NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (phase, arm, batch)
) STRICT, WITHOUT ROWID;

-- Phases that are finished, with the time spent outside batches.
CREATE TABLE phases (
  phase TEXT NOT NULL,
  arm TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (phase, arm)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  phase TEXT NOT NULL,
  arm TEXT NOT NULL,
  batch INTEGER NOT NULL,
  item INTEGER NOT NULL,
  type TEXT NOT NULL,
  seed INTEGER,
  completion TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  valid INTEGER NOT NULL CHECK (valid IN (0, 1)),
  outcome TEXT NOT NULL,
  detail TEXT NOT NULL,
  topic TEXT NOT NULL,
  structure TEXT,
  rendered TEXT,
  task TEXT,
  output TEXT,
  checksum INTEGER NOT NULL,
  UNIQUE (phase, arm, batch, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
  task_id TEXT NOT NULL REFERENCES tasks ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  seed INTEGER,
  draw INTEGER,
  answer TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('pass', 'fail', 'error')),
  checksum INTEGER NOT NULL,
  PRIMARY KEY (task_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE labels (
  task_id TEXT PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
  passes INTEGER NOT NULL,
  k INTEGER NOT NULL,
  split TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  CHECK (passes BETWEEN 0 AND k)
) STRICT, WITHOUT ROWID;

-- Of solvers behind an endpoint only.
CREATE TABLE solver_usage (
  phase TEXT NOT NULL,
  arm TEXT NOT NULL,
  batch INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  unmetered INTEGER NOT NULL,
  cut_off INTEGER NOT NULL,
  empty INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (phase, arm, batch)
) STRICT, WITHOUT ROWID;

-- Responses of an endpoint as they came, until the batch that asked is committed; of a training step, until a checkpoint holds it.
CREATE TABLE kept_answers (
  phase TEXT NOT NULL,
  arm TEXT NOT NULL,
  batch INTEGER NOT NULL,
  question TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  response TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (phase, arm, batch, question, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE probes (
  name TEXT PRIMARY KEY,
  card TEXT NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
  arm TEXT NOT NULL,
  step INTEGER NOT NULL,
  reward_mean REAL NOT NULL,
  reward_sd REAL NOT NULL,
  validity REAL NOT NULL,
  kl_per_sequence REAL NOT NULL,
  gradient_norm REAL NOT NULL,
  loss REAL NOT NULL,
  entropy REAL NOT NULL,
  clipped_share REAL NOT NULL,
  claimed_in_band REAL,
  measured_in_band REAL,
  solver_trials INTEGER NOT NULL,
  propose_seconds REAL NOT NULL,
  check_seconds REAL NOT NULL,
  score_seconds REAL NOT NULL,
  update_seconds REAL NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (arm, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_scores (
  task_id TEXT PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
  arm TEXT NOT NULL,
  step INTEGER NOT NULL,
  logits TEXT,
  reward REAL NOT NULL,
  advantage REAL NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX step_scores_by_step ON step_scores (arm, step);

CREATE TABLE checkpoints (
  arm TEXT NOT NULL,
  step INTEGER NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (arm, step)
) STRICT, WITHOUT ROWID;

-- Adversarial co-evolution: the tasks mined after a step (attempts and labels of split 'mined') and the auxiliary probe fitted then.
CREATE TABLE minings (
  arm TEXT NOT NULL,
  step INTEGER NOT NULL,
  mined INTEGER NOT NULL,
  false_positives INTEGER NOT NULL,
  solver_trials INTEGER NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  elapsed_seconds REAL NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (arm, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations (
  arm TEXT PRIMARY KEY,
  measured TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;
