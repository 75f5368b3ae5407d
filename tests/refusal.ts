/** What a function throws, for tests that read the message. */

/** `UserError: message` of what a function throws. */
export function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return 'nothing thrown';
}
