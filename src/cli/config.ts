/** `propel config`: a configuration as it will run, every default filled in, or the schema that documents each setting. */
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { documentedSchema } from '../pipeline/compare-config.js';
import { settingsPage } from '../pipeline/settings-page.js';
import { printJson, printLines } from './output.js';
import { runOptions, withRunOptions } from './run-options.js';
import type { RunFlags } from './run-options.js';

export function register(program: Command): void {
  withRunOptions(program.command('config'))
    .description('print a configuration with every default filled in, or the schema that documents each setting')
    .option('--schema', 'print the JSON Schema of a configuration')
    .option('--reference', 'print every setting with its values, default and meaning, in Markdown')
    .addHelpText(
      'after',
      '\nExamples:\n  propel config --schema\n  propel config --reference > settings.md\n  propel config my.yaml --set train.steps=20',
    )
    .action((configuration: string, flags: RunFlags & { schema?: boolean; reference?: boolean }) => {
      if (flags.schema) return printJson(documentedSchema());
      if (flags.reference) return printLines([settingsPage(documentedSchema()).trimEnd()]);
      const { config } = runOptions(configuration, flags);
      if (flags.json) return printJson(config);
      printLines([stringify(config).trimEnd()]);
    });
}
