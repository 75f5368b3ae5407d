/** Fenced blocks of a model's Markdown, in one pass over the lines that can hold a fence. */

export interface FencedBlock {
  /** The first word after the opening fence, in lower case; empty without one. */
  readonly label: string;
  readonly text: string;
}

/** What stands before a fence: the containers that it is in. Lines of its block begin the same, with blanks for list markers. */
interface Containers {
  /** Quotes, `>`. */
  readonly quotes: number;
  /** Columns from the last quote, or the line's start, to the fence: indent as deep as a model likes, and list markers. */
  readonly indent: number;
}

interface Fence extends Containers {
  readonly fence: string;
  readonly info: string;
  /** Whether a list item begins on its line: such a fence can open a block, but close none. */
  readonly inItem: boolean;
}

interface OpenBlock extends Fence {
  /** Where its inside begins. */
  readonly start: number;
}

const CANDIDATE = /```|~~~/g;
/** A list marker, `-` or `2.`, with a blank behind it. */
const ITEM = /(?:[-*+]|\d{1,9}[.)])(?=[ \t])/y;
const SHORTEST_FENCE = 3;
/** CommonMark's tab stops. */
const TAB = 4;
/** A whole answer wrapped once more; what it holds counts. */
const WRAPPERS = new Set(['markdown', 'md']);
/** Wrappers in wrappers are looked into so many times; nobody means more. */
const MAX_WRAPPERS = 4;

/**
 * The closed blocks of a text, in order, within quotes and list items too. A fence is closed by one of the same character that is at
 * least as long. A labelled fence like the one that is open begins a block anew, since the one before was never closed. A block that the
 * text ends in is none. Lines lose the quotes and the indent that their fence has, as far as they have them.
 */
export function fencedBlocks(text: string, depth = 0): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: OpenBlock | null = null;
  CANDIDATE.lastIndex = 0;
  for (let candidate = CANDIDATE.exec(text); candidate !== null;) {
    const lineStart = text.lastIndexOf('\n', candidate.index) + 1;
    const lineEnd = endOfLine(text, candidate.index);
    const fence = readFence(text.slice(lineStart, lineEnd).replace(/\r$/, ''));
    if (fence !== null && opens(fence, open)) {
      open = { ...fence, start: Math.min(lineEnd + 1, text.length) };
    } else if (fence !== null && open !== null && closes(fence, open)) {
      const inside = withoutContainers(text.slice(open.start, Math.max(open.start, lineStart - 1)), open);
      const label = labelOf(open.info);
      const isWrapper = WRAPPERS.has(label) && depth < MAX_WRAPPERS;
      for (const block of isWrapper ? fencedBlocks(inside, depth + 1) : [{ label, text: inside }]) blocks.push(block);
      open = null;
    }
    CANDIDATE.lastIndex = lineEnd;
    candidate = CANDIDATE.exec(text);
  }
  return blocks;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

/** The fence that a line is, behind its containers; null for another line. */
function readFence(line: string): Fence | null {
  let [quotes, indent, at] = [0, 0, 0];
  let inItem = false;
  for (;;) {
    for (; line[at] === ' ' || line[at] === '\t'; at++) indent += line[at] === '\t' ? TAB - (indent % TAB) : 1;
    if (line[at] === '`' || line[at] === '~') break;
    if (line[at] === '>') {
      at += line[at + 1] === ' ' ? 2 : 1;
      quotes += 1;
      indent = 0;
      inItem = false;
      continue;
    }
    ITEM.lastIndex = at;
    if (!ITEM.test(line)) return null;
    indent += ITEM.lastIndex - at;
    at = ITEM.lastIndex;
    inItem = true;
  }
  let end = at;
  while (line[end] === line[at]) end++;
  const info = line.slice(end);
  // Inline code, which closes on its line, is no fence.
  if (end - at < SHORTEST_FENCE || (line[at] === '`' && info.includes('`'))) return null;
  return { quotes, indent, fence: line.slice(at, end), info: info.trim(), inItem };
}

function opens({ fence, info }: Fence, open: OpenBlock | null): boolean {
  return open === null || (info !== '' && fence === open.fence);
}

function closes({ fence, info, inItem }: Fence, open: OpenBlock): boolean {
  return !inItem && info === '' && fence[0] === open.fence[0] && fence.length >= open.fence.length;
}

function withoutContainers(inside: string, containers: Containers): string {
  const text = inside.replaceAll('\r\n', '\n').replace(/\r$/, '');
  if (containers.quotes === 0 && containers.indent === 0) return text;
  return text
    .split('\n')
    .map((line) => withoutPrefix(line, containers))
    .join('\n');
}

function withoutPrefix(line: string, { quotes, indent }: Containers): string {
  let start = 0;
  for (let quote = 0; quote < quotes; quote++) {
    let at = start;
    while (line[at] === ' ' || line[at] === '\t') at++;
    if (line[at] !== '>') break;
    start = at + (line[at + 1] === ' ' ? 2 : 1);
  }
  let column = 0;
  while (column < indent && (line[start] === ' ' || line[start] === '\t')) {
    column += line[start] === '\t' ? TAB - (column % TAB) : 1;
    start += 1;
  }
  // Of a tab that reaches beyond the indent, the rest stays.
  return ' '.repeat(Math.max(0, column - indent)) + line.slice(start);
}

/** `python`, of `Python title="f.py"`, `python:` and `{.python}` too. */
function labelOf(info: string): string {
  const [word = ''] = info.replace(/^\{\s*\.?/, '').split(/[\s,:{}]/, 1);
  return word.toLowerCase();
}
