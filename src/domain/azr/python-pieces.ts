/** Python source cut into strings, comments, blanks, line breaks and the code between them, in one pass, whatever it holds. */

export interface Piece {
  /** `blank`: within a line, a continued line's break among it; `break`: the end of a line. */
  readonly kind: 'code' | 'string' | 'comment' | 'blank' | 'break';
  readonly text: string;
  /** Whether brackets are open behind it. */
  readonly isWithin: boolean;
}

/** What is being read, the innermost last: a string's text, a field of an f-string, which holds code, or the format behind a field's colon. */
type Context =
  | { readonly kind: 'string'; readonly quote: string; readonly hasFields: boolean; readonly isRaw: boolean }
  | { readonly kind: 'field'; brackets: number }
  | { readonly kind: 'format' };

const BLANK = /(?:[ \t\f]|\\(?:\r\n|\r|\n))+/y;
const COMMENT = /#[^\r\n]*/y;
const BREAK = /\r\n|\r|\n/y;
const OPENING = /(?<prefix>[rR][bBfF]?|[bBfF][rR]?|[uU])?(?<quote>"""|'''|"|')/y;
const WORD = /[\w\u{80}-\u{10ffff}]+/uy;
/** In a string, what ends nothing and opens nothing. */
const TEXT = /[^"'{}\\\r\n]+/y;
const NAMED_CHARACTER = /\\N\{[^{}"'\r\n]*\}/y;

/**
 * A string is one piece; of an f-string without the comments that Python 3.12 allows in its fields. Null where a string does not end, which
 * Python would refuse.
 * @param isWithin whether the source stands between brackets
 */
export function pythonPieces(source: string, isWithin = false): Piece[] | null {
  const pieces: Piece[] = [];
  const contexts: Context[] = [];
  let string = '';
  let brackets = isWithin ? 1 : 0;
  let at = 0;

  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(source);
  };
  const take = (kind: Piece['kind'], text: string): void => {
    at += text.length;
    if (contexts.length === 0) pieces.push({ kind, text, isWithin: brackets > 0 });
    else if (kind !== 'comment') string += text;
  };
  const endString = (quote: string): void => {
    take('string', quote);
    contexts.pop();
    if (contexts.length > 0) return;
    pieces.push({ kind: 'string', text: string, isWithin: brackets > 0 });
    string = '';
  };

  while (at < source.length) {
    const context = contexts.at(-1);
    if (context === undefined || context.kind === 'field') {
      const found = (
        [
          ['blank', BLANK],
          ['break', BREAK],
          ['comment', COMMENT],
        ] as const
      ).find(([, pattern]) => match(pattern) !== null);
      if (found !== undefined) {
        take(found[0], match(found[1])![0]);
        continue;
      }
      const opening = match(OPENING);
      if (opening !== null) {
        const { prefix = '', quote = '' } = opening.groups!;
        contexts.push({ kind: 'string', quote, hasFields: /f/i.test(prefix), isRaw: /r/i.test(prefix) });
        take('string', opening[0]);
        continue;
      }
      const text = match(WORD)?.[0] ?? source[at]!;
      if (context === undefined) {
        if ('([{'.includes(text)) brackets++;
        if (')]}'.includes(text)) brackets = Math.max(isWithin ? 1 : 0, brackets - 1);
      }
      take('code', text);
      if (context === undefined) continue;
      if (context.brackets === 0 && text === '}') contexts.pop();
      else if (context.brackets === 0 && text === ':') contexts.push({ kind: 'format' });
      else if ('([{'.includes(text)) context.brackets++;
      else if (')]}'.includes(text)) context.brackets = Math.max(0, context.brackets - 1);
      continue;
    }

    const { quote, hasFields, isRaw } = contexts.findLast((each) => each.kind === 'string')!;
    const next = source[at]!;
    if (source.startsWith(quote, at)) {
      // In a format it would leave a field open.
      if (context.kind === 'format') return null;
      endString(quote);
    } else if (next === '\\') {
      const named = hasFields && !isRaw ? match(NAMED_CHARACTER) : null;
      const isBeforeField = hasFields && '{}'.includes(source[at + 1] ?? ' ');
      take(
        'string',
        named?.[0] ?? (isBeforeField ? next : source.slice(at, at + (source.startsWith('\r\n', at + 1) ? 3 : 2))),
      );
    } else if ('\r\n'.includes(next) && quote.length === 1) {
      return null;
    } else if (hasFields && context.kind === 'string' && (source.startsWith('{{', at) || source.startsWith('}}', at))) {
      take('string', source.slice(at, at + 2));
    } else if (hasFields && next === '{') {
      take('string', next);
      contexts.push({ kind: 'field', brackets: 0 });
    } else if (context.kind === 'format' && next === '}') {
      take('string', next);
      contexts.splice(-2);
    } else {
      take('string', match(TEXT)?.[0] ?? next);
    }
  }
  return contexts.length === 0 ? pieces : null;
}
