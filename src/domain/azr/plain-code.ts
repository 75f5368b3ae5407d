/** Arguments that are no data but cannot be anything but data and functions over it: `[3, 1], lambda x: x.sort()`. */
import { pythonTokens, type PythonToken } from '../../metrics/python-tokens.js';

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

const KEYWORDS = words('lambda if else and or not in is for None True False');
/** Builtins that make data of data. None makes or changes classes, or reaches names by their text. */
const BUILTINS = words(`
  abs all any ascii bin bool bytes chr complex dict divmod enumerate filter float frozenset hex int isinstance len list map max min
  oct ord pow range repr reversed round set slice sorted str sum tuple zip
`);
/** Methods of data. Other attributes lead from functions and generators to frames, and so to the program. */
const METHODS = words(`
  add append capitalize casefold center clear copy count decode difference discard encode endswith expandtabs extend find get imag index
  insert intersection isalnum isalpha isascii isdecimal isdigit isdisjoint islower isnumeric isspace issubset issuperset istitle isupper
  items join keys ljust lower lstrip partition pop popitem real remove removeprefix removesuffix replace reverse rfind rindex rjust
  rpartition rsplit rstrip setdefault sort split splitlines startswith strip swapcase symmetric_difference title union update upper
  values zfill
`);
/** What a recorded input may name, but no answer: with these an object of any kind can be made. */
const UNSAFE = words(`
  f type object eval exec compile globals locals vars getattr setattr delattr open input super property classmethod staticmethod
`);

const FORMATTED = /^\w*[fF]\w*['"]/;

/**
 * Whether arguments hold nothing but literals, operators, lambdas, comprehensions, builtins and methods that work on data, and the names
 * that a recorded input has too. Such code cannot make an object of a class of its own, which could pass for any value.
 * @param recorded the recorded input, whose names the program knows
 */
export function isPlainCode(text: string, recorded: string): boolean {
  const tokens = pythonTokens(text);
  const bound = boundNames(tokens);
  if (bound === null) return false;
  const known = new Set(pythonTokens(recorded).flatMap(({ kind, text: name }) => (kind === 'name' ? [name] : [])));
  return tokens.every(({ kind, text: token }, index) => {
    if (kind === 'string') return !FORMATTED.test(token);
    if (kind === 'operator') return token !== ':=';
    if (kind !== 'name') return true;
    // The name of an argument.
    if (tokens[index + 1]?.text === '=') return !token.startsWith('_');
    const isAttribute = tokens[index - 1]?.text === '.';
    const ownSet = isAttribute ? [METHODS] : [KEYWORDS, BUILTINS, bound];
    return ownSet.some((set) => set.has(token)) || (known.has(token) && !token.startsWith('_') && !UNSAFE.has(token));
  });
}

/** Parameters of lambdas and variables of comprehensions; null where a lambda has defaults, which may be anything. */
function boundNames(tokens: readonly PythonToken[]): ReadonlySet<string> | null {
  const bound = new Set<string>();
  for (const [start, { text: keyword }] of tokens.entries()) {
    if (keyword !== 'lambda' && keyword !== 'for') continue;
    const end = keyword === 'lambda' ? ':' : 'in';
    for (let at = start + 1; tokens[at] !== undefined && tokens[at]!.text !== end; at++) {
      const { kind, text } = tokens[at]!;
      if (kind === 'name') bound.add(text);
      else if (!['*', '**', ',', '(', ')', '/'].includes(text)) return null;
    }
  }
  for (const name of bound) if (UNSAFE.has(name) || name.startsWith('_')) return null;
  return bound;
}
