/** What a reader of an arm's figures must know before taking them for what its training made. */
import { count } from './format.js';
import type { ArmResult, TrainingEnd } from './results.js';

/**
 * One line each; none for an arm that is as it should be.
 * @param invalid what its generations are that are not valid, in words
 */
export function armWarnings(
  { name, training, n, valid }: Pick<ArmResult, 'name' | 'training' | 'n' | 'valid'>,
  invalid: string,
): string[] {
  return [
    ...(training?.status === 'collapsed' ? [`arm ${name}: ${collapsed(training)}`] : []),
    ...(valid === 0 ? [`arm ${name}: none of its ${count(n)} fresh generations is valid: ${invalid}`] : []),
  ];
}

/** `its training collapsed at step 12 (KL of …); measured is the checkpoint of step 10, the last that was trusted` */
export function collapsed({ reason, steps, evaluatedStep }: TrainingEnd): string {
  const measured =
    evaluatedStep === steps
      ? `the checkpoint of that step, as evaluate.checkpoint asks`
      : evaluatedStep === 0
        ? 'the generator as it was before training, no checkpoint being trusted'
        : `the checkpoint of step ${evaluatedStep}, the last that was trusted`;
  return `its training collapsed at step ${steps} (${reason}); measured is ${measured}`;
}
