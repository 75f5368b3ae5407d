// Loaded into a run (`node --import`): counts its units of work and, at one of them, ends it. A unit is a statement that writes rows, a step in
// writing or removing a file (half of a file's content among them), a message to the engine's or the sandbox's threads, a pass of a probe's fit.
// PROPEL_UNITS: JSON of {log, fault: null | {kind: 'kill' | 'interrupt' | 'full', since: 'start' | 'opened', units}}.
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { sep } from 'node:path';
import { isMainThread, Worker } from 'node:worker_threads';

if (isMainThread) install(JSON.parse(process.env.PROPEL_UNITS));

function install({ log, fault }) {
  const { writeFileSync, writeSync } = fs;
  const require = createRequire(import.meta.url);
  const Database = require('better-sqlite3');
  const marks = [];
  let units = 0;
  let opened = null;
  let hit;

  const save = () => writeFileSync(log, JSON.stringify({ marks, opened, units, at: hit }));
  const reach = (name) => marks.push({ name, at: units });

  /** @param full what a full disk makes of it */
  const unit = (what, full) => {
    units += 1;
    const since = fault?.since === 'opened' ? opened : 0;
    if (!fault || since === null || units - since < fault.units) return;
    if (fault.kind === 'full' && !full) return; // the next that writes
    const { kind } = fault;
    fault = null;
    hit = what;
    save();
    if (kind === 'kill') process.kill(process.pid, 'SIGKILL');
    else if (kind === 'interrupt') process.kill(process.pid, 'SIGINT');
    else throw full();
  };

  const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  fs.writeFileSync = (file, content, ...options) => {
    unit('before content', noSpace);
    if (typeof file === 'number' && content.length > 1) {
      const bytes = Buffer.from(content);
      const half = bytes.length >> 1;
      writeSync(file, bytes, 0, half);
      unit('within content', noSpace);
      return writeFileSync(file, bytes.subarray(half), ...options);
    }
    return writeFileSync(file, content, ...options);
  };
  for (const name of ['fsyncSync', 'rmSync', 'mkdirSync', 'linkSync']) {
    const original = fs[name];
    fs[name] = (...args) => {
      unit(name);
      return original(...args);
    };
  }
  const { renameSync } = fs;
  fs.renameSync = (from, to) => {
    unit('before rename', noSpace);
    renameSync(from, to);
    if (to.endsWith('pipeline.yaml')) opened = units;
    const [, part] = to.split(`${sep}.work${sep}`);
    if (part !== undefined) reach(`work ${part}`);
    unit('after rename');
  };
  syncBuiltinESMExports();

  const statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'));
  const { run } = statement;
  const full = () => new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
  let pending = [];
  statement.run = function (...args) {
    unit(this.source.slice(0, 30), /^(INSERT|COMMIT)/.test(this.source) ? full : undefined);
    const result = run.apply(this, args);
    const mark = markOf(this.source, args[0]);
    if (mark !== null) pending.push(mark);
    if (this.source === 'COMMIT') {
      pending.forEach(reach);
      pending = [];
      unit('after commit');
    } else if (this.source.startsWith('ROLLBACK')) pending = [];
    return result;
  };

  // oxlint-disable-next-line typescript/unbound-method -- called with the worker itself below
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (...args) {
    unit('message');
    return postMessage.apply(this, args);
  };
  const { InferenceSession } = require('onnxruntime-node');
  const runSession = InferenceSession.prototype.run;
  InferenceSession.prototype.run = function (...args) {
    unit('pass');
    return runSession.apply(this, args);
  };

  process.on('exit', save);
}

/** What a statement writes that a run goes on from. */
function markOf(source, row) {
  switch (/^INSERT INTO (\w+)/.exec(source)?.[1]) {
    case 'batches':
      return `batch ${row.phase} ${row.arm} ${row.batch}`;
    case 'phases':
      return `phase ${row.phase} ${row.arm}`;
    case 'checkpoints':
      return `checkpoint ${row.arm} ${row.step}`;
    case 'minings':
      return `mining ${row.arm} ${row.step}`;
    default:
      return null;
  }
}
