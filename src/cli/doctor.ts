/** `propel doctor`: what works here, and what to do about what does not. */
import type { Command } from 'commander';
import { diagnose, type Diagnosis, type Part } from '../pipeline/doctor.js';
import { alignColumns, printJson, printLines } from './output.js';

export function register(program: Command): void {
  program
    .command('doctor')
    .description('test execution providers, sandbox, store and models, and say what to do where one does not work')
    .argument('[folder]', 'a run whose store is checked too, every page and row of it')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Exit code: 0 when the embedded default run can work and the store of the run that is given is whole, else 1.

Examples:
  $ propel doctor
  $ propel doctor runs/azr-micro
  $ propel doctor --json | jq .ready`,
    )
    .action(async (folder: string | undefined, { json }: { readonly json?: true }) => {
      const diagnosis = await diagnose(folder);
      if (json) printJson(diagnosis);
      else printLines(describe(diagnosis));
      if (!diagnosis.ready || diagnosis.run?.status === 'failed') process.exitCode = 1;
    });
}

function describe({ ready, versions, parts, run }: Diagnosis): string[] {
  const unready = parts.filter(({ needed, status }) => needed && status !== 'ok').map(({ name }) => name);
  return [
    ...alignColumns(Object.entries(versions)),
    '',
    ...alignColumns([...parts, ...(run ? [run] : [])].flatMap(describePart)),
    '',
    ready ? 'The default run can work: propel run' : `The default run cannot work yet: ${unready.join(', ')}`,
  ];
}

function describePart({ kind, name, status, detail, advice, nodes }: Part): string[][] {
  const rows = [[kind, name, status, detail.replaceAll('\n', ' ')]];
  if (nodes) {
    const places = Object.entries(nodes).map(([provider, count]) => `${count} on ${provider}`);
    rows.push(['', '', '', `nodes: ${places.join(', ')}`]);
  }
  if (advice !== '') rows.push(['', '', '', `→ ${advice}`]);
  return rows;
}
