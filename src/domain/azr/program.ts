/** Programs from elsewhere, made to define the function `f`. */

/** The program with those of its import statements that it lacks. */
export function withImports(snippet: string, imports: readonly string[]): string {
  const missing = imports.filter((statement) => !snippet.includes(statement));
  return nameF([...missing, snippet].join('\n'));
}

/** A program without `f` but with just one function has that one called `f` too. */
export function nameF(code: string): string {
  const names = [...code.matchAll(/^(?:async[ \t]+)?def[ \t]+(\w+)/gm)].map((match) => match[1]);
  const [only] = names;
  return names.length !== 1 || definesF(code) ? code : `${code}\nf = ${only}`;
}

/** Ways to define `f` at the start of a line: what stands within a function or a branch is that one's own. All take linear time. */
const DEFINITIONS_OF_F = [
  /^(?:async[ \t]+)?def[ \t]+f[ \t]*[([]/m,
  /^class[ \t]+f[ \t]*[([:]/m,
  // f = …, f: Callable = …, g = f = …
  /^(?:\w+[ \t]*=[ \t]*){0,8}f[ \t]*(?::[^=\n]*)?=(?!=)/m,
  /^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t][^\n]*\bas[ \t]+f\b/m,
  /^from[ \t]+[\w.]+[ \t]+import[ \t(](?:[^\n]*[ \t,(])?f[ \t]*(?:[,)#;]|$)/m,
];

function definesF(code: string): boolean {
  return DEFINITIONS_OF_F.some((definition) => definition.test(code));
}

/** A function, but for those by whose names programs test or start themselves. */
const FUNCTION = /^(?:async[ \t]+)?def[ \t]+(?!test|main\b)\w/m;

/**
 * Of several texts of Python the one that is the answer: the last that defines `f`, as tests and examples of its use may follow; where
 * none does, the last that defines another function; without one, the last. Each stands for itself: what an earlier one defines is not there.
 */
export function programAmong(texts: readonly string[]): string | null {
  return texts.findLast(definesF) ?? texts.findLast((text) => FUNCTION.test(text)) ?? texts.at(-1) ?? null;
}

/** The last of the texts that defines `f`. */
export function lastWithF(texts: readonly string[]): string | null {
  return texts.findLast(definesF) ?? null;
}
