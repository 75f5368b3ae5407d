import { expect, it } from 'vitest';
import { endingOf } from './finish-reason.js';

it.each([
  [
    'whole',
    [
      'stop',
      'STOP',
      'eos',
      'eos_token',
      'end',
      'end_turn',

      'stop_sequence',
      'COMPLETE',
      'tool_calls',
      'function_call',
    ],
  ],
  [
    'cut',
    [
      'length',
      'max_tokens',
      'MAX_TOKENS',
      'model_length',
      'max_output_tokens',
      'model_context_window_exceeded',
      'token-limit',
    ],
  ],
  [
    'lost',
    [
      'content_filter',
      'abort',
      'aborted',
      'cancelled',
      'error',
      'SAFETY',
      'RECITATION',
      'network_error',
      'insufficient_system_resource',
      'rate_limit',
    ],
  ],
  ['refused', ['refusal']],
  ['unknown', ['eos_found', 'generated', '', '7', null]],
] as const)('says that a text is %s: %j', (ending, reasons) => {
  for (const reason of reasons) expect([reason, endingOf(reason)]).toEqual([reason, ending]);
});
