/** What a failing command tells. */
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { RunError, UserError } from '../errors.js';
import { exitCodeOf, messageOf } from './errors.js';

describe('exit codes', () => {
  it.each([
    [new UserError('unknown key'), 2],
    [new RunError('the run folder is locked'), 1],
    [new CommanderError(1, 'commander.unknownOption', 'unknown option'), 2],
    [new CommanderError(0, 'commander.helpDisplayed', 'help'), 0],
    [new TypeError('x is not a function'), 1],
  ])('%s → %i', (error, code) => {
    expect(exitCodeOf(error)).toBe(code);
  });
});

describe('messages', () => {
  it('are one line', () => {
    expect(messageOf(new UserError('line 3:\n  not valid\n'), false)).toBe('line 3: not valid');
  });

  it('have their details on lines of their own', () => {
    const error = new RunError('nothing\nvalid', { details: ['  2 unparsable', '    try  this'] });
    expect(messageOf(error, false)).toBe('nothing valid\n  2 unparsable\n    try  this');
  });

  it('say how to see more of an error that nobody foresaw', () => {
    expect(messageOf(new TypeError('x is not a function'), false)).toBe(
      'x is not a function (unexpected; set PROPEL_DEBUG=1 for the stack)',
    );
  });

  it('give stack and causes for debugging', () => {
    const error = new UserError('cannot read it', { cause: new Error('permission denied') });
    expect(messageOf(error, true)).toMatch(
      /^UserError: cannot read it\n {4}at [^]*\ncaused by Error: permission denied\n/,
    );
  });
});
