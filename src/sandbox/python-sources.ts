/**
 * The Python of both sandboxes, in the order in which it becomes one script; each sandbox has a last part of its own.
 * `sandbox/runner/supervisor.py` joins the same files within a container.
 */
export const SHARED_SOURCES: readonly string[] = [
  'syntax.py',
  'operations.py',
  'dependence.py',
  'facts.py',
  'host.py',
  'standard_library.py',
  'policy.py',
  'runner.py',
];
