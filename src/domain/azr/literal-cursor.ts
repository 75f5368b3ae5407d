/** Where a reader of literals stands in its text: lines, blanks and comments by the rules of Python's tokenizer. */

/** Longest text read, in UTF-16 units: what a sandbox returns of one call, and some more. */
export const MAX_LITERAL_LENGTH = 5 << 18;

/** A text that is not a literal: why, and where (UTF-16 units from the start). */
export class LiteralError extends Error {
  readonly position: number;

  constructor(message: string, position: number) {
    super(`${message} at character ${position + 1}`);
    this.name = 'LiteralError';
    this.position = position;
  }
}

/** A text and a place in it. */
export class LiteralCursor {
  protected readonly text: string;
  protected position = 0;
  /** Of brackets that are open. */
  protected depth = 0;

  constructor(text: string) {
    if (text.length > MAX_LITERAL_LENGTH) throw new LiteralError('text too long', MAX_LITERAL_LENGTH);
    if (!text.isWellFormed() || text.includes('\0')) throw new LiteralError('text that Python cannot read', 0);
    this.text = text.replace(/\r\n?/g, '\n');
  }

  /**
   * From the start of a line to the first character of an expression, or the end: over empty lines and comments, however they are
   * indented. A form feed sets the indent to none; a line that is continued has that of its first part.
   */
  protected beginLine(): void {
    for (;;) {
      let indent = 0;
      let continued = 0;
      for (; ; this.position += 1) {
        const character = this.text[this.position];
        if (character === ' ' || character === '\t') indent += 1;
        else if (character === '\f') indent = 0;
        else if (character === '\\') {
          continued ||= indent;
          this.continueLine();
          this.position -= 1;
        } else break;
      }
      const isComment = this.text[this.position] === '#';
      this.skipComment();
      if (this.text[this.position] !== '\n') {
        if ((continued || indent) > 0 && !isComment) this.fail('unexpected indentation');
        return;
      }
      this.position += 1;
    }
  }

  /** Blanks and comments; line breaks too within brackets, where they mean nothing. */
  protected skipBlanks(): void {
    for (;;) {
      const character = this.text[this.position];
      if (character === '\\') this.continueLine();
      else if (character === '#') this.skipComment();
      else if (character === ' ' || character === '\t' || character === '\f' || (character === '\n' && this.depth > 0))
        this.position += 1;
      else return;
    }
  }

  /** A backslash joins a line to the next, which must be there; within brackets the closing one is still to come. */
  protected continueLine(): void {
    const isLast = this.position + 2 >= this.text.length;
    if (this.text[this.position + 1] !== '\n' || (isLast && this.depth === 0))
      this.fail('a backslash that joins no lines');
    this.position += 2;
  }

  protected skipComment(): void {
    if (this.text[this.position] !== '#') return;
    const end = this.text.indexOf('\n', this.position);
    this.position = end === -1 ? this.text.length : end;
  }

  protected peek(text: string): boolean {
    this.skipBlanks();
    return this.text.startsWith(text, this.position);
  }

  protected take(text: string): boolean {
    if (!this.peek(text)) return false;
    this.position += text.length;
    return true;
  }

  protected expect(text: string): void {
    if (!this.take(text)) this.fail(`'${text}' expected`);
  }

  protected looksLike(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    return pattern.test(this.text);
  }

  /** The text that a sticky pattern matches here, consumed. */
  protected match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const match = pattern.exec(this.text)?.[0];
    this.position += match?.length ?? 0;
    return match;
  }

  protected atEnd(): boolean {
    return this.position >= this.text.length;
  }

  protected fail(message: string): never {
    throw new LiteralError(message, this.position);
  }
}
