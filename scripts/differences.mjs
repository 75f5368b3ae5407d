// Looks for programs that come out differently on the two sandboxes: small ones, drawn by a seeded generator over built-in types and the
// modules that programs may import. Needs a Docker daemon and a build:
//     node scripts/differences.mjs [--programs 2000] [--seed 1]
// Prints what is in no list of differences (src/sandbox/differences.ts) and then ends with exit code 1.
import { parseArgs } from 'node:util';
import { createDockerSandbox } from '../dist/sandbox/docker/docker-sandbox.js';
import { createWasmSandbox } from '../dist/sandbox/wasm/wasm-sandbox.js';

const { values } = parseArgs({
  options: { programs: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const AT_ONCE = 4;
const EXPRESSIONS_A_PROGRAM = 25;
const LIMITS = { timeoutMs: 2000, memoryMiB: 128 };

const [docker, wasm] = await Promise.all([
  createDockerSandbox({ size: 2, limits: LIMITS }),
  createWasmSandbox({ size: 2, limits: LIMITS }),
]);

/** A generator of whole numbers below `n`, the same for the same seed (mulberry32). */
function numbers(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

const MODULES =
  `abc array base64 binascii bisect calendar cmath collections colorsys contextlib copy dataclasses datetime decimal difflib
  enum fractions functools graphlib hashlib heapq io itertools json keyword math numbers operator os pprint queue random re reprlib
  secrets statistics string struct sys textwrap time timeit types typing unicodedata warnings weakref zlib`.split(
    /\s+/,
  );

/** What may be called, as both sandboxes have it: names of functions with their module, and methods of the values below. */
const CATALOGUE = `
import ${MODULES.join(', ')}
MODULES = ${JSON.stringify(MODULES)}
def names(thing): return [each for each in dir(thing) if callable(getattr(thing, each, None)) and each[0] != '_']
def f(*values):
    if values: return names(values[0])
    return [each for each in names(__builtins__) if each.islower()], {name: names(globals()[name]) for name in MODULES}
`;

/** Values as Python. Those that only one version or word size can have are left out. */
const VALUES =
  `0|1|-1|2|3|7|10|-5|255|256|1000|2**31-1|2**40|-2**63|10**30|True|False|None|0.0|-0.0|0.1|1.5|-2.75|1e10|1e-7|1e300|float("inf")
  |float("nan")|2j|1+2j|""|"a"|"abc"|"Hello, World"|"a,b,c"|"  pad  "|"żółć"|"\\U0001f642x"|"12"|"-3.5"|"%s-%d"|"{}{}"|"ab\\ncd\\n"|"2024-02-29"
  |"12:30"|"[1, 2]"|"a+b"|"(a|b)*c"|"ISO-8859-1"|"utf-8"|b""|b"abc"|b"\\x00\\xff"|bytearray(b"xyz")|[]|[1]|[3,1,2]|[0.1,0.2,0.3]
  |["b","a"]|[[1,2],[3]]|[None]|()|(1,)|(1,2,3)|("a",1)|{}|{"a":1}|{1:2,3:4}|{"x":[1,2]}|set()|{1}|{1,2,3}|frozenset({1,2})|range(5)
  |range(0,10,3)|slice(1,3)|slice(None,None,-1)|int|str|list|dict|len|abs|ord|repr|sorted|(lambda x: x)|(lambda *a: a)|(lambda a, b: a)
  |iter([1,2,3])|(i for i in range(3))|map(str,[1,2])|zip("ab",[1,2])|enumerate("ab")|reversed([1,2])|Ellipsis|NotImplemented|object
  |Exception("e")|ValueError(1)|memoryview(b"abc")|datetime.date(2024,2,29)|datetime.datetime(2024,1,2,3,4,5)|datetime.timedelta(3,7)
  |datetime.time(1,2)|datetime.timezone.utc|decimal.Decimal("1.10")|decimal.Decimal("NaN")|fractions.Fraction(3,6)
  |collections.Counter("aab")|collections.deque([1,2],3)|collections.OrderedDict(a=1)|collections.defaultdict(list)|collections.ChainMap({1:2})
  |collections.namedtuple("P","x y")(1,2)|array.array("i",[1,2])|re.compile("a+")|re.match("(a)(b)?","ab")|io.StringIO("ab\\ncd")|io.BytesIO(b"ab")
  |string.Template("$a b")|random.Random(5)|enum.Enum("E","A B").A|types.SimpleNamespace(a=1)|hashlib.md5(b"a")|struct.Struct("<ih")
  |functools.partial(int,base=2)|queue.Queue(2)|statistics.NormalDist(0,1)|textwrap.TextWrapper(5)|uuid`
    .split('|')
    .map((each) => each.trim())
    .filter((each) => each !== 'uuid');
const BINARY = '+ - * / // % ** @ << >> & | ^ < <= > >= == != in is and or'.split(' ');

/** What is listed in differences.ts, as it shows here: what was asked, or what came out. */
const LISTED = [
  // A version's own checks of arguments, and its reprs.
  /\b(randrange|expovariate|splitlines|sample|IOBase|BufferedIOBase|TextIOBase|RawIOBase|IncrementalNewlineDecoder)\(/,
  /\benum\.\w*\(/,
  /OrderedDict|ParamSpec|slice\(|get_cache_token/,
  /\bsum\(|fsum|\bhash\(|sizeof|get_ident|getallocatedblocks/,
  // Numbers of system errors, which choose an exception's kind.
  /OSError|os\.error|strerror/,
  // A word's size: of an index, and of the hashes that order a set.
  /OverflowError/,
  /\{[^}]*\d\.\d/,
];

const catalogue = await both({ code: CATALOGUE, calls: [''] }, false);
const [builtins, modules] = parse(catalogue.wasm[0].repr);
const [otherBuiltins, otherModules] = parse(catalogue.docker[0].repr);
const shared = (own, other) => own.filter((name) => other.includes(name));
const functions = [
  ...shared(builtins, otherBuiltins).filter((name) => !['exit', 'quit', 'input', 'help', 'breakpoint'].includes(name)),
  ...MODULES.flatMap((module) => shared(modules[module], otherModules[module]).map((name) => `${module}.${name}`)),
];
const methodsOf = await methods();

const random = numbers(Number(values.seed));
const pick = (list) => list[random(list.length)];
let compared = 0;
const found = [];
for (let at = 0; at < Number(values.programs); at += AT_ONCE) {
  const programs = Array.from({ length: Math.min(AT_ONCE, Number(values.programs) - at) }, () => program());
  await Promise.all(programs.map(compare));
  if (at % 200 === 0) console.error(`${at} programs, ${compared} results, ${found.length} differences`);
}
await Promise.all([docker.close(), wasm.close()]);
for (const { asked, embedded, container } of found) {
  console.log(`${asked}\n    embedded:  ${embedded}\n    container: ${container}`);
}
console.log(`${values.programs} programs, ${compared} results, ${found.length} differences that are in no list`);
process.exitCode = found.length > 0 ? 1 : 0;

async function both(one, determinism = true) {
  const [a, b] = await Promise.all([wasm.run(one, { determinism }), docker.run(one, { determinism })]);
  return { wasm: a.calls, docker: b.calls };
}

/** A literal of Python's as JSON has it: texts, lists and dicts alone. */
function parse(repr) {
  return JSON.parse(repr.replace(/^\((.*)\)$/s, '[$1]').replaceAll("'", '"'));
}

/** Methods of each value, as both have them. */
async function methods() {
  const { wasm: own, docker: other } = await both({ code: CATALOGUE, calls: VALUES }, false);
  return own.map((call, index) =>
    call.outcome === 'ok' && other[index].outcome === 'ok' ? shared(parse(call.repr), parse(other[index].repr)) : [],
  );
}

function value(depth = 0) {
  return depth < 2 && random(4) === 0 ? expression(depth + 1) : pick(VALUES);
}

function expression(depth = 0) {
  const args = () => Array.from({ length: random(4) }, () => value(depth)).join(', ');
  switch (random(8)) {
    case 0:
      return `(${value(depth)} ${pick(BINARY)} ${value(depth)})`;
    case 1:
      return `(${value(depth)})[${value(depth)}]`;
    case 2:
      return `${pick(['list', 'sorted', 'tuple', 'str', 'repr', 'len', 'sum', 'max', 'min', 'dict', 'set'])}(${value(depth)})`;
    case 3:
    case 4:
    case 5: {
      const at = random(VALUES.length);
      return methodsOf[at].length === 0 ? VALUES[at] : `(${VALUES[at]}).${pick(methodsOf[at])}(${args()})`;
    }
    default:
      return `${pick(functions)}(${args()})`;
  }
}

/** Some are expressions by themselves, each in a call of its own; some are programs of a few statements that share their names. */
function program() {
  const head = `import ${MODULES.join(', ')}\n`;
  if (random(3) > 0) {
    const calls = Array.from({ length: EXPRESSIONS_A_PROGRAM }, () => expression());
    return {
      code: `${head}def f(value): return value() if type(value) is type(lambda: 0) else value`,
      calls: calls.map((each) => `lambda: ${each}`),
    };
  }
  const body = Array.from({ length: 2 + random(5) }, (_, index) => {
    const assigned = `v${index} = ${expression().replace(/\bx\b/g, 'x')}`;
    switch (random(4)) {
      case 0:
        return `    try:\n        ${assigned}\n    except Exception as error:\n        v${index} = type(error).__name__`;
      case 1:
        return `    v${index} = [item for item in itertools.islice(${value()}, 5)]`;
      case 2:
        return `    for item in itertools.islice(${value()}, 5): v${index} = item\n    else: v${index} = ${expression()}`;
      default:
        return `    try: ${assigned}\n    finally: pass`;
    }
  });
  return {
    code: `${head}def f():\n${body.join('\n')}\n    return sorted(str(each) for each in locals().values())`,
    calls: [''],
  };
}

/** A call that differs is asked again by itself: what it does to others is theirs. A set of few texts may come out alike by chance. */
async function compare(one) {
  const { wasm: own, docker: other } = await both(one);
  for (const [index, call] of own.entries()) {
    compared++;
    if (brief(call) === brief(other[index])) continue;
    const alone = one.calls.length === 1 ? null : await both({ ...one, calls: [one.calls[index]] });
    const [embedded, container] = [brief(alone?.wasm[0] ?? call), brief(alone?.docker[0] ?? other[index])];
    if (embedded === container) continue;
    const asked = one.calls[index] === '' ? one.code.slice(one.code.indexOf('def f')) : one.calls[index];
    const text = `${asked} ${embedded} ${container}`;
    const isChance = /\bset\(|frozenset|\{'/.test(text) && text.includes('nondeterministic');
    if (!isChance && !LISTED.some((pattern) => pattern.test(text))) found.push({ asked, embedded, container });
  }
}

/** The value but for the last digits of floats, or the outcome and the kind of exception: both are in the list, as are an exception's words. */
function brief({ outcome, repr, detail }) {
  if (outcome === 'ok') return `ok ${repr.replace(/\d+\.\d+(e[-+]\d+)?/g, (number) => Number(number).toPrecision(13))}`;
  return outcome === 'runtime_error' ? `runtime_error ${/^\w*/.exec(detail)[0]}` : outcome;
}
