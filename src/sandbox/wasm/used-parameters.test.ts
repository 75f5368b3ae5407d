/** Which parameters a returned value can depend on, on the embedded interpreter: bodies of `def f(y, n)`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../sandbox.js';

/** Workers load compiled JavaScript, so the sandbox comes from the build. */
const built = new URL('../../../dist/sandbox/wasm/wasm-sandbox.js', import.meta.url).href;
const { createWasmSandbox } = (await import(built)) as typeof import('./wasm-sandbox.js');

const IMPORTS = `import math, random, heapq, itertools, functools, collections, contextlib, decimal, copy
from collections import Counter, defaultdict
from decimal import getcontext, Decimal
`;

/** What these return does not depend on n, though most of them read it. */
const DEAD = [
  'z = n + 5\nreturn y',
  'n\nreturn y',
  'n + 5\nreturn y',
  'print(n)\nreturn y',
  'if n > 0:\n  pass\nreturn y',
  'for _ in range(n):\n  pass\nreturn y',
  'z = n\nz = 0\nreturn y + z',
  'n = 3\nreturn y + n',
  'return y\nreturn n',
  'g = lambda: n\nreturn y',
  'def g():\n  return n\nreturn y',
  'if False:\n  return n\nreturn y',
  'return y if True else n',
  'z = []\nz.append(n)\nreturn y',
  'z = y[:]\nz.append(n)\nreturn y',
  'z = [v for v in y]\nz.append(n)\nreturn y',
  'return [n for n in y]',
  'return sorted(y, key=lambda n: -n)',
  'while n > 0:\n  n -= 1\nreturn y',
  'for v in y:\n  if v == n:\n    break\nreturn y',
  '_ = n\nreturn y',
  'del n\nreturn y',
  'try:\n  z = n + 5\nexcept Exception:\n  pass\nreturn y',
  'y, z = y, n\nreturn y',
  'z = 0\nfor v in y:\n  z += n\nreturn y',
  'd = {}\nd[n] = y\nreturn y',
  't = 0\nfor v in y:\n  if v > n:\n    t += 1\nreturn len(y)',
  'z = math.sqrt(n)\nreturn y',
  'z = sorted(y)\nz.insert(0, n)\nreturn y[0]',
  "f'{n}'\nreturn y",
  'n = y\nreturn n',
  'n += 1\nreturn y',
  'x = n\nw = x\nreturn y',
  'if n:\n  z = 1\nelse:\n  z = 2\nreturn y',
  'a = {k: n for k in y}\nreturn len(y)',
  'z = y + [n]\nreturn y',
  'global q\nreturn y',
  'match n:\n  case 1:\n    z = 1\nreturn y',
  'z = str(n)\nz.join(y)\nreturn y',
  'n = 3\nreturn sum(v % n for v in y)',
  '(z := n)\nreturn y',
  'z = random.randint(0, n)\nreturn y',
  'while True:\n  z = n\n  return y',
  'z = max(y, n)\nreturn y',
  'z = [y, n]\nreturn y',
  'x = y\nx2 = n\nx2 += 1\nreturn x',
  'return y, (lambda n: n)(1)',
  'def n():\n  return 1\nreturn y + n()',
  'for n in y:\n  y = n\nreturn y',
  'import math\nz = math.floor(n)\nreturn math.floor(y)',
  'z = copy.deepcopy(y)\nz.append(n)\nreturn y',
  'z = len(y) * n\ny.append(1)\nreturn y',
  'def g(a):\n  return a + n\nz = g(3)\nreturn y',
  'z = n or y\nreturn y',
  'z = y if n else 3\nreturn y',
  'n: int = 3\nreturn y',
];

/** What these return can depend on n. */
const USED = [
  'return y + n',
  'if n > 0:\n  return y\nreturn 0',
  'if n > 0:\n  y = 0\nreturn y',
  'for _ in range(n):\n  y += 1\nreturn y',
  'b = y\nb.append(n)\nreturn y',
  'y.append(n)\nreturn y',
  'y[0] = n\nreturn y',
  'y[n] = 0\nreturn y',
  'del y[n]\nreturn y',
  'g = lambda: n\nreturn y + g()',
  'def g():\n  return n\nreturn g()',
  'def g():\n  y.append(n)\ng()\nreturn y',
  'def g():\n  nonlocal y\n  y = n\ng()\nreturn y',
  'k = 0\ng = lambda: k\nk = n\nreturn g()',
  'h = [lambda: k]\nk = n\nreturn h[0]()',
  'return locals()',
  "exec('y = n')\nreturn y",
  'random.seed(n)\nreturn random.random()',
  'for row in y:\n  row.append(n)\nreturn y',
  'row = y[0]\nrow.append(n)\nreturn y',
  'for i, row in enumerate(y):\n  row[i] = n\nreturn y',
  'z = y[:]\nz[0].append(n)\nreturn y',
  'e = sorted(y)[0]\ne.append(n)\nreturn y',
  'while n > 0:\n  n -= 1\n  y += 1\nreturn y',
  'for v in y:\n  if v == n:\n    break\nelse:\n  return 1\nreturn 2',
  't = 0\nfor v in y:\n  if v > n:\n    break\n  t += 1\nreturn t',
  'for v in y:\n  if v > n:\n    continue\n  return v',
  'try:\n  int(n)\nexcept ValueError:\n  return 0\nreturn y',
  'try:\n  z = 1 // n\n  y = 2\nexcept ZeroDivisionError:\n  pass\nreturn y',
  '(y := n)\nreturn y',
  'return [y := n for _ in range(3)]',
  'return [v for v in y if v > n]',
  'return {v: n for v in y}',
  'list(map(lambda v: y.append(v), n))\nreturn y',
  'list(map(y.append, n))\nreturn y',
  '[y.append(v) for v in n]\nreturn y',
  'heapq.heappush(y, n)\nreturn y',
  'y.sort(key=lambda v: v % n)\nreturn y',
  'y += n\nreturn y',
  'z = y\nz += n\nreturn y',
  'z = y\nz |= n\nreturn y',
  'if n < 0:\n  raise ValueError(n)\nreturn y',
  'assert n > 0\nreturn y',
  'raise_ = n\nreturn raise_',
  'match n:\n  case 1:\n    return 1\nreturn y',
  'match y:\n  case [a, b]:\n    a.append(n)\nreturn y',
  'match y:\n  case v if v > n:\n    return 1\nreturn 0',
  'with contextlib.suppress(TypeError):\n  y = y + n\nreturn y',
  'it = iter(y)\nlist(itertools.islice(it, n))\nreturn list(it)',
  'it = iter(y)\nfor v in it:\n  if v == n:\n    break\nreturn list(it)',
  'g = (v + k for v in y)\nk = n\nreturn list(g)',
  'k = 1\ng = (v + k for v in y)\nk = n\nreturn list(g)',
  'a, b = y, n\na, b = b, a\nreturn a',
  'x, *w = y, n\nreturn w',
  'try:\n  return y\nfinally:\n  y.append(n)',
  'try:\n  pass\nfinally:\n  y = n\nreturn y',
  'try:\n  y = int(y)\nexcept Exception as e:\n  y = n\nreturn y',
  'try:\n  raise KeyError(n)\nexcept KeyError as e:\n  return e.args[0]',
  'global q\nq = n\nreturn g0(y)',
  'd = {}\nd.setdefault(y, []).append(n)\nreturn d',
  'd = defaultdict(list)\nd[y].append(n)\nreturn d',
  'out = []\ndef rec(i):\n  if i < n:\n    out.append(i)\n    rec(i + 1)\nrec(0)\nreturn out',
  'x = [[0] * 3 for _ in range(3)]\nfor i in range(3):\n  for j in range(3):\n    x[i][j] = n\nreturn x',
  'p = x0 = n\nreturn x0',
  'y = y or n\nreturn y',
  'return y and n',
  'for y in range(n):\n  pass\nreturn y',
  'for i in range(3):\n  y, n = n, y\nreturn y',
  'z = 0\nfor i in range(5):\n  y = z\n  z = w if i else 0\n  w = n\nreturn y',
  'w = 0\nfor i in range(5):\n  y = z if i else 0\n  z = w\n  w = n\nreturn y',
  'return g0(y, n)',
  'y = apply(y, n)\nreturn y',
  'list.append(y, n)\nreturn y',
  's = set()\ns.add(n)\nreturn s',
  'y.__setitem__(0, n)\nreturn y',
  "getattr(y, 'append')(n)\nreturn y",
  'a = y.append\na(n)\nreturn y',
  "return eval('n')",
  'decimal.getcontext().prec = n\nreturn decimal.Decimal(1) / 3',
  'getcontext().prec = n\nreturn Decimal(1) / 3',
  'random.shuffle(y, n)\nreturn y',
  "return f'{n}'",
  "return '%s' % n",
  'while True:\n  if n > y:\n    return y\n  y += 1',
  'q = collections.deque(y)\nq.rotate(n)\nreturn list(q)',
  'class A:\n  def __init__(s, v):\n    s.v = v\na = A(n)\nreturn a.v',
  'class A:\n  v = n\nreturn A.v',
  'x = [y]\nx[0].append(n)\nreturn y',
  "x = {'a': y}\nfor k, v in x.items():\n  v.append(n)\nreturn y",
  'x = (y, 1)\nu, _ = x\nu.append(n)\nreturn y',
  'c = Counter(y)\nc.update(n)\nreturn c',
  'c = Counter(y)\nc.subtract(n)\nreturn c',
  'yield n',
  'x = zip(y, n)\nreturn list(x)',
  'z = n\nreturn z',
  'z = [n]\nz2 = z\nreturn z2[0]',
  'if y:\n  z = n\nelse:\n  z = 0\nreturn z',
  'z = 0\nif y:\n  z = n\nreturn z',
  'return max(y, key=lambda v: v * n)',
  'return sorted(y, key=g0)[:n]',
  'a = b = []\na.append(n)\nreturn b',
  't = y\nfor v in t:\n  v[0] = n\nreturn y',
  'functools.reduce(lambda a, v: y.append(v) or a, n, 0)\nreturn y',
  'cmp = lambda a: a > n\nreturn list(filter(cmp, y))',
  'a = []\nb = [a, a]\nb[0].append(n)\nreturn a',
  'a = []\nb = a if y else []\nb.append(n)\nreturn a',
  'y.update({n: 1})\nreturn y',
  "x = dict(a=y)\nx['a'].append(n)\nreturn y",
  'x = y.copy()\nx[0].append(n)\nreturn y',
  "x = y.get('a')\nx.append(n)\nreturn y",
  'def g(v):\n  v.append(n)\ng(y)\nreturn y',
  'z = (y.append(n), 1)\nreturn y',
  'if y.append(n) or True:\n  pass\nreturn y',
  'while y.append(n):\n  pass\nreturn y',
  'for _ in [y.append(n)]:\n  pass\nreturn y',
  'return (y.append(n), y)[1]',
  'assert y.append(n) is None\nreturn y',
  'del y[:n]\nreturn y',
  'y[1:n] = []\nreturn y',
  'y.v = n\nreturn y.v',
  'f.k = n\nreturn f.k + y',
  'x = y\nfor i in range(3):\n  x = x[0]\nx.append(n)\nreturn y',
];

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createWasmSandbox({ size: 2 });
});
afterAll(() => sandbox.close());

const usedBy = async (code: string): Promise<readonly string[] | undefined> => {
  const { facts } = await sandbox.run({ code, calls: [] }, { facts: true });
  return facts?.functions.findLast(({ name }) => name === 'f')?.used;
};
const indented = (body: string): string => body.replaceAll(/^/gm, '    ');
const judged = (bodies: readonly string[]): Promise<[string, boolean | undefined][]> =>
  Promise.all(
    bodies.map(async (body) => {
      const used = await usedBy(`${IMPORTS}def f(y, n):\n${indented(body)}`);
      return [body, used?.includes('n')] as [string, boolean | undefined];
    }),
  );

describe('a parameter is used when the returned value can depend on it', () => {
  it('is not used by dead code', async () => {
    expect((await judged(DEAD)).filter(([, used]) => used !== false)).toEqual([]);
  });

  it('is used by data, by control, through aliases, closures, exceptions and other state', async () => {
    expect((await judged(USED)).filter(([, used]) => used !== true)).toEqual([]);
  });

  it('is told of every form of definition, the last of which counts', async () => {
    expect(await usedBy('f = lambda y, n: y')).toEqual(['y']);
    expect(await usedBy('def g(y, n):\n    return n\nf = g')).toEqual(['n']);
    expect(await usedBy('def f(y, n):\n    return n\ndef f(y, n):\n    return y')).toEqual(['y']);
    expect(await usedBy('async def f(y, n):\n    return y')).toEqual(['y']);
    expect(await usedBy('def f(y, *rest, key=1, **others):\n    return rest, others')).toEqual(['rest', 'others']);
  });

  it('is found in time, and counts where a program is too large to follow', async () => {
    const deep = Array.from({ length: 19 }, (_, i) => `${'    '.repeat(i + 1)}for v${i} in y:`);
    const nested = `def f(y, n):\n    t = 0\n${deep.join('\n')}\n${'    '.repeat(20)}t += n\n    return y`;
    expect(await usedBy(nested)).toEqual(['y']);
    const tries = Array.from({ length: 18 }, (_, i) => `${' '.repeat(i + 1)}try:`);
    const handlers = tries.map((_, i) => `${' '.repeat(18 - i)}except E:\n${' '.repeat(19 - i)}y += 1`);
    expect(
      await usedBy(`def f(y, n):\n${tries.join('\n')}\n${' '.repeat(19)}n\n${handlers.join('\n')}\n return y`),
    ).toEqual(['y', 'n']);
    const chain = Array.from({ length: 900 }, (_, i) => ` elif y == ${i}:\n  pass`).join('\n');
    expect(await usedBy(`def f(y, n):\n if y:\n  pass\n${chain}\n z = n\n return 1`)).toEqual(['y', 'n']);
    const apart = Array.from({ length: 2000 }, (_, i) => ` b${i} = 0\n a${i} = [b${i}]`).join('\n');
    expect(await usedBy(`def f(y, n):\n${apart}\n z = n\n return y`)).toEqual(['y', 'n']);
  });
});
