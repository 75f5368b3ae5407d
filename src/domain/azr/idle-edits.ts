/**
 * Edits of a program's text that leave what it does as it was: what a generator could write to please a probe without another task. They
 * are drawn at random; whether the answer did stay is for the sandbox to say.
 */
import { seededRandom } from '../../metrics/random.js';
import { pythonPieces } from './python-pieces.js';

const EDIT_KINDS = ['comment', 'spacing', 'rename', 'string', 'reorder', 'pad', 'dead branch'] as const;
type EditKind = (typeof EDIT_KINDS)[number];

interface Edit {
  readonly kind: EditKind;
  readonly source: string;
}

/** Names that programs have and that a variable may be given. */
const NAMES = [
  'a',
  'b',
  'k',
  'n',
  'u',
  'v',
  'w',
  'y',
  'z',
  'i',
  'out',
  'res',
  'xs',
  'data',
  'total',
  'result',
  'items',
];
const VALUES = ['0', '1', '7', 'True', 'None', '[]', '[1, 2, 3]', "''", "'abc'", '(0, 1)'];
const LETTERS = 'abcdefghij klmnopqrs tuvwxyz';
/** Characters of a comment or an unused string: some, many, about as many as a small reference model reads. */
const LENGTHS = [8, 40, 240];

interface Draw {
  /** A whole number below `end`. */
  below(end: number): number;
  of<T>(choices: readonly T[]): T;
}

/** A program with what its edits go by. */
interface Program {
  readonly source: string;
  /** The source with its strings and comments blotted out, as long as it is: what is found there is code. */
  readonly code: string;
}

/**
 * `count` edits of a program, dealt out over the kinds; fewer where the program has nothing that a kind changes. They follow from `seed`.
 */
export function idleEdits(source: string, count: number, seed: number): Edit[] {
  const code = codeOf(source);
  if (code === null) return [];
  const random = seededRandom(seed);
  const below = (end: number) => Math.floor(random() * end);
  const draw: Draw = { below, of: (choices) => choices[below(choices.length)]! };
  return Array.from({ length: count }, (_, i) => EDIT_KINDS[i % EDIT_KINDS.length]!).flatMap((kind) => {
    const edited = EDITS[kind]({ source, code }, draw);
    return edited === null || edited === source ? [] : [{ kind, source: edited }];
  });
}

const EDITS: Readonly<Record<EditKind, (program: Program, draw: Draw) => string | null>> = {
  comment,
  spacing,
  rename,
  string,
  reorder,
  pad,
  'dead branch': deadBranch,
};

function codeOf(source: string): string | null {
  const pieces = pythonPieces(source);
  if (pieces === null) return null;
  const code = pieces
    .map(({ kind, text }) => (kind === 'string' || kind === 'comment' ? '"'.repeat(text.length) : text))
    .join('');
  // Comments within fields of strings are in none of the pieces.
  return code.length === source.length ? code : null;
}

function comment({ source }: Program, draw: Draw): string {
  const text = `# ${lettersOf(draw)}`;
  return draw.of([`${source}  ${text}`, source.replace(/:\n(?= )/, `:  ${text}\n`), source.replaceAll('\n', '\n\n')]);
}

/** Blanks where none are needed. */
function spacing(program: Program, draw: Draw): string {
  const [pattern, replacement] = draw.of<[RegExp, string]>([
    [/(?<=[\w)\]"]) (?=(?:[-+*/%<>]|[=!]=))|(?<=(?:[-+*/%<>]|[=!]=)) (?=[\w([{"])/g, ''],
    [/(?<=,) /g, ''],
    [/(?<=[([{])(?=[\w"])|(?<=[\w"])(?=[)\]}])/g, ' '],
    [/(?<=[\w)\]"]) =(?= )|(?<=[\w)\]"])(?=[[(])/g, ' $&'],
  ]);
  return replaceInCode(program, pattern, replacement);
}

/** A parameter or a variable by another name. */
function rename(program: Program, draw: Draw): string | null {
  const names = namesOf(program);
  const fresh = freshName(names, draw);
  if (names.length === 0 || fresh === null) return null;
  return replaceInCode(program, new RegExp(`(?<![\\w.])${draw.of(names)}(?!\\w)`, 'g'), fresh);
}

/** Strings in other quotes, and one that nothing reads. */
function string(program: Program, draw: Draw): string | null {
  if (draw.below(2) === 0) return insertLines(program, draw, [`${draw.of(['s', 't', 'note'])} = '${lettersOf(draw)}'`]);
  const pieces = pythonPieces(program.source) ?? [];
  return pieces.map(({ kind, text }) => (kind === 'string' ? requoted(text) : text)).join('');
}

function requoted(text: string): string {
  const inner = /^(["'])([^"'\\]*)\1$/.exec(text)?.[2];
  if (inner === undefined) return text;
  return text.startsWith("'") ? `"${inner}"` : `'${inner}'`;
}

/** The sides of an operator, where they can be in either order whatever they are: of == and !=, of a number that is added or multiplied. */
const SIDES = new RegExp(
  String.raw`(?<=[([{,:] ?|\b(?:return|if|elif|while|and|or) |[^=!<>+*/%-] ?= )` +
    String.raw`(?<left>[a-z_]\w*|\d+)(?<operator> ?(?:==|!=|\+|\*) ?)(?<right>[a-z_]\w*|\d+)` +
    String.raw`(?= ?(?:[)\]},:]|\n|$|(?:for|if|else|and|or)\b))`,
  'g',
);

function reorder(program: Program, draw: Draw): string | null {
  const found = [...program.code.matchAll(SIDES)].filter(({ groups }) => {
    const { left, operator, right } = groups as { left: string; operator: string; right: string };
    return operator.includes('=') || /^\d/.test(left) || /^\d/.test(right);
  });
  if (found.length === 0) return null;
  const { index, 0: text, groups } = draw.of(found);
  const swapped = `${groups!['right']}${groups!['operator']}${groups!['left']}`;
  return program.source.slice(0, index) + swapped + program.source.slice(index + text.length);
}

/** Statements that are run for nothing, and brackets around what is returned. */
function pad(program: Program, draw: Draw): string | null {
  const names = namesOf(program);
  const fresh = freshName(names, draw);
  if (names.length === 0 || fresh === null) return null;
  const name = names[0]!;
  const lines = [`${fresh} = ${draw.of(VALUES)}`, `${fresh} = ${name}`, `${name} = ${name}`, `${fresh} = [${name}]`];
  if (draw.below(lines.length + 1) > 0) return insertLines(program, draw, [draw.of(lines)]);
  return replaceInCode(program, /(?<=\breturn )[^\n]+/g, '($&)');
}

/** Branches and loops that are never entered, and lines that are never reached. */
function deadBranch(program: Program, draw: Draw): string | null {
  const name = draw.of(['x', ...namesOf(program)]);
  const body = draw.of([
    `${name} = ${draw.of(VALUES)}`,
    `return ${draw.of(VALUES)}`,
    `return ${name}`,
    `${name} = sorted(${name})`,
    `${name} = ${name}[::-1]`,
  ]);
  const lines = draw.of([
    ['if False:', `    ${body}`],
    ['if 0 > 1:', `    ${body}`],
    ['while False:', `    ${body}`],
    [`for ${freshName(namesOf(program), draw) ?? '_'} in []:`, `    ${body}`],
    null,
  ]);
  if (lines !== null) return insertLines(program, draw, lines);
  const last = /\n([ \t]+)return\b[^\n]*$/.exec(program.code);
  return last && `${program.source}\n${last[1]}${body}`;
}

/** Lines at the beginning of f, or before its last line where that returns; null where it has neither. */
function insertLines({ source, code }: Program, draw: Draw, lines: readonly string[]): string | null {
  const first = /(?:^|\n)def f\([^\n]*:\n(?<indent>[ \t]+)(?=\S)/.exec(code);
  const last = /\n(?<indent>[ \t]+)(?=return\b[^\n]*$)/.exec(code);
  const places = [first, last].filter((place) => place !== null);
  if (places.length === 0) return null;
  const place = draw.of(places);
  const at = place.index + place[0].length;
  const indent = place.groups!['indent']!;
  return source.slice(0, at) + lines.map((line) => `${line}\n${indent}`).join('') + source.slice(at);
}

/** What the program binds: parameters of f, assigned names, names of loops. */
function namesOf({ code }: Program): string[] {
  const parameters = /(?:^|\n)def f\((?<list>[^()\n]*)\)/.exec(code)?.groups!['list'] ?? '';
  const bound = [...code.matchAll(/(?:^|\n)[ \t]*([a-z_]\w*) =|\bfor ([a-z_]\w*) in\b/g)].map(
    ([, assigned, looped]) => (assigned ?? looped)!,
  );
  const names = parameters.split(',').map((parameter) => /^\s*([a-z_]\w*)\s*$/.exec(parameter)?.[1] ?? '');
  return [...new Set([...names, ...bound])].filter((name) => name !== '');
}

function freshName(taken: readonly string[], draw: Draw): string | null {
  const free = NAMES.filter((name) => !taken.includes(name));
  return free.length === 0 ? null : draw.of(free);
}

function lettersOf(draw: Draw): string {
  const length = draw.of(LENGTHS);
  return Array.from({ length }, () => LETTERS[draw.below(LETTERS.length)]!).join('');
}

/** The source with every match of a pattern in its code replaced; `$&` is what was matched, strings and all. */
function replaceInCode({ source, code }: Program, pattern: RegExp, replacement: string): string {
  let edited = '';
  let from = 0;
  for (const { index, 0: match } of code.matchAll(pattern)) {
    edited += source.slice(from, index) + replacement.replaceAll('$&', () => source.slice(index, index + match.length));
    from = index + match.length;
  }
  return edited + source.slice(from);
}
