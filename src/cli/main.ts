#!/usr/bin/env node
/** The `propel` command. */
import { runCommandLine } from './program.js';

await runCommandLine(process.argv);
