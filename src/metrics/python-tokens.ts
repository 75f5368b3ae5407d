/** Tokens of Python source, and the skeleton that is left when names and constants are taken out of them. */

/** A token as Python's own tokenizer has it; comments and blank lines are none. */
export interface PythonToken {
  readonly kind: 'name' | 'number' | 'string' | 'operator' | 'newline' | 'indent' | 'dedent';
  readonly text: string;
}

const STRING_START = String.raw`[rRbBuUfF]{0,2}(?:"""|'''|"|')`;
const NUMBER = String.raw`0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?[jJ]?`;
const NAME = String.raw`[\p{ID_Start}_][\p{ID_Continue}]*`;
const OPERATOR = String.raw`\*\*=?|//=?|<<=?|>>=?|\.\.\.|->|:=|[-+*/%@&|^=!<>]=|\S`;
const TOKEN = new RegExp(
  `(?<space>[^\\S\\n]+|\\\\\\n|#[^\\n]*)|(?<newline>\\n)|(?<opening>${STRING_START})|(?<number>${NUMBER})|(?<name>${NAME})|(?<operator>${OPERATOR})`,
  'syu',
);

/**
 * Tokenise Python source by the rules of the language reference (chapter 2): line breaks within brackets are none, a change of
 * indentation is a token. An f-string is one token. Source that Python would refuse gives some tokens, never an error.
 */
export function pythonTokens(source: string): PythonToken[] {
  const tokens: PythonToken[] = [];
  const indentation = [0];
  let brackets = 0;
  let lineStart = true;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(source); match !== null; match = TOKEN.exec(source)) {
    const { space, newline, opening, number } = match.groups!;
    const string = opening === undefined ? undefined : stringAt(source, match.index, opening);
    // A quote that opens no string: its prefix is a name, and it stands for itself.
    const prefix = string === null && opening !== undefined ? /^\w*/.exec(opening)![0] : '';
    const name = match.groups!['name'] ?? (prefix || undefined);
    const text = string ?? (string === null ? (name ?? opening![0]!) : match[0]);
    TOKEN.lastIndex = match.index + text.length;
    if (space !== undefined) continue;
    if (newline !== undefined) {
      if (brackets === 0 && !lineStart) tokens.push({ kind: 'newline', text: '' });
      lineStart ||= brackets === 0;
      continue;
    }
    if (lineStart) {
      lineStart = false;
      indent(tokens, indentation, match.index - (source.lastIndexOf('\n', match.index - 1) + 1));
    }
    if (typeof string === 'string') tokens.push({ kind: 'string', text });
    else if (number !== undefined) tokens.push({ kind: 'number', text });
    else if (name !== undefined) tokens.push({ kind: 'name', text });
    else {
      if ('([{'.includes(text)) brackets++;
      if (')]}'.includes(text)) brackets = Math.max(0, brackets - 1);
      tokens.push({ kind: 'operator', text });
    }
  }
  if (!lineStart) tokens.push({ kind: 'newline', text: '' });
  indent(tokens, indentation, 0);
  return tokens;
}

/**
 * The string that begins with `opening`, prefix and quotes, at `start`; null where it does not end. Of those one with a backslash goes on
 * to where it had to end, all the same: else every quote within would be followed to there anew.
 */
function stringAt(source: string, start: number, opening: string): string | null {
  const quote = opening.replace(/^\w*/, '');
  let isEscaped = false;
  for (let at = start + opening.length; ; at++) {
    if (at >= source.length || (quote.length === 1 && source[at] === '\n'))
      return isEscaped ? source.slice(start, Math.min(at, source.length)) : null;
    if (source.startsWith(quote, at)) return source.slice(start, at + quote.length);
    if (source[at] !== '\\') continue;
    isEscaped = true;
    at += 1;
  }
}

function indent(tokens: PythonToken[], indentation: number[], width: number): void {
  if (width > indentation.at(-1)!) {
    indentation.push(width);
    tokens.push({ kind: 'indent', text: '' });
  }
  while (width < indentation.at(-1)!) {
    indentation.pop();
    tokens.push({ kind: 'dedent', text: '' });
  }
}

const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if import in is
lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);

/** What a program calls without having defined it; a program that gives one of these names to a variable keeps the name. */
const BUILTINS = new Set(
  `abs all any ascii bin bool bytearray bytes callable chr complex dict dir divmod enumerate eval filter float format frozenset getattr
hasattr hash hex id input int isinstance issubclass iter len list map max memoryview min next object oct open ord pow print property range
repr reversed round set slice sorted str sum super tuple type vars zip`.split(/\s+/),
);

/**
 * The skeleton of a program: its tokens with variables renamed `v0`, `v1`, … in the order in which they appear, numbers masked as `0`
 * and strings as `''`. Keywords (True and None among them), builtins, attributes, names of keyword arguments and of imports stay.
 * Programs with equal skeletons are *type-2 clones*: equal but for names, literals, layout and comments.
 *
 * Source: C. Roy and J. Cordy, "A survey on software clone detection research" (2007), section 2.1.
 */
export function skeleton(source: string): string[] {
  const tokens = pythonTokens(source);
  const imported = importedNames(tokens);
  const variables = new Map<string, string>();
  // Whether each open bracket holds parameters rather than arguments.
  const brackets: boolean[] = [];
  return tokens.map(({ kind, text }, index) => {
    const before = tokens[index - 1]?.text;
    const after = tokens[index + 1]?.text;
    switch (kind) {
      case 'number':
        return '0';
      case 'string':
        return "''";
      case 'name': {
        const isArgument = brackets.at(-1) === false && (before === '(' || before === ',') && after === '=';
        if (KEYWORDS.has(text) || BUILTINS.has(text) || imported.has(text) || before === '.' || isArgument) return text;
        let renamed = variables.get(text);
        if (renamed === undefined) variables.set(text, (renamed = `v${variables.size}`));
        return renamed;
      }
      case 'operator':
        if ('([{'.includes(text)) brackets.push(tokens[index - 2]?.text === 'def');
        if (')]}'.includes(text)) brackets.pop();
        return text;
      default:
        return kind;
    }
  });
}

function importedNames(tokens: readonly PythonToken[]): Set<string> {
  const names = new Set<string>();
  let within = false;
  let starts = true;
  for (const { kind, text } of tokens) {
    if (starts) within = /^(?:import|from)$/.test(text);
    else if (within && kind === 'name') names.add(text);
    starts = kind === 'newline' || kind === 'indent' || kind === 'dedent';
  }
  return names;
}
