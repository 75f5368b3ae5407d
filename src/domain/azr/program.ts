/** Programs from elsewhere, made to define the function `f`. */

/** The program with those of its import statements that it lacks. */
export function withImports(snippet: string, imports: readonly string[]): string {
  const missing = imports.filter((statement) => !snippet.includes(statement));
  return nameF([...missing, snippet].join('\n'));
}

/** A program without a function `f` but with just one function has that one called `f` too. */
export function nameF(code: string): string {
  const names = [...code.matchAll(/^(?:async[ \t]+)?def[ \t]+(\w+)/gm)].map((match) => match[1]);
  const [only] = names;
  if (names.length !== 1 || only === 'f' || /^f[ \t]*=/m.test(code)) return code;
  return `${code}\nf = ${only}`;
}
