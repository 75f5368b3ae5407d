/** Fenced blocks of a model's Markdown, in one pass over its lines. */

export interface FencedBlock {
  /** The first word after the opening fence, in lower case; empty without one. */
  readonly label: string;
  readonly text: string;
}

/** Indented as deep as a model likes: blocks stand under list items too. */
const FENCE = /^(?<indent>[ \t]*)(?<fence>`{3,}|~{3,})[ \t]*(?<info>.*)$/s;
/** A whole answer wrapped once more; what it holds counts. */
const WRAPPERS = new Set(['markdown', 'md']);

/**
 * The closed blocks of a text, in order. A fence is closed by one of the same character that is at least as long. A labelled fence
 * like the one that is open begins a block anew, since the one before was never closed. A block that the text ends in is none. Lines
 * lose the indent that their fence has.
 */
export function fencedBlocks(text: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: {
    readonly fence: string;
    readonly indent: number;
    readonly label: string;
    readonly lines: string[];
  } | null = null;
  for (const line of text.split(/\r?\n/)) {
    const { indent = '', fence, info = '' } = FENCE.exec(line)?.groups ?? {};
    const isOpening = fence !== undefined && !(fence.startsWith('`') && info.includes('`'));
    if (isOpening && (open === null || (info.trim() !== '' && fence === open.fence))) {
      open = { fence, indent: indent.length, label: labelOf(info), lines: [] };
    } else if (open !== null && fence !== undefined && info.trim() === '' && closes(fence, open.fence)) {
      const inside = open.lines.join('\n');
      if (WRAPPERS.has(open.label)) for (const block of fencedBlocks(inside)) blocks.push(block);
      else blocks.push({ label: open.label, text: inside });
      open = null;
    } else open?.lines.push(withoutIndent(line, open.indent));
  }
  return blocks;
}

function withoutIndent(line: string, most: number): string {
  const own = line.length - line.trimStart().length;
  return line.slice(Math.min(own, most));
}

function closes(fence: string, opening: string): boolean {
  return fence[0] === opening[0] && fence.length >= opening.length;
}

/** `python`, of `Python title="f.py"`, `python:` and `{.python}` too. */
function labelOf(info: string): string {
  const [word = ''] = info.replace(/^\{\s*\.?/, '').split(/[\s,:{}]/, 1);
  return word.toLowerCase();
}
