/** Fills in a parsed template, as Jinja does in the sandbox that transformers gives it: what is not alike is refused by name. */
import type { parse } from '@huggingface/jinja';
import { applyFilter, applyTest } from './filters.js';
import { method } from './methods.js';
import { operate } from './operators.js';
import { Callable, isTrue, items, Namespace, text, Tuple, typeName, Unsupported } from './values.js';
import type { Arguments, Value } from './values.js';

export type Program = ReturnType<typeof parse>;
/** A node of the library's tree, whose classes it does not export. */
export interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Steps after which a template is taken for one without end. */
const MOST_STEPS = 1_000_000;

class Scope {
  readonly #names = new Map<string, Value>();
  readonly #outer: Scope | null;
  constructor(outer: Scope | null) {
    this.#outer = outer;
  }
  get(name: string): Value {
    return this.#names.has(name) ? this.#names.get(name) : this.#outer?.get(name);
  }
  set(name: string, value: Value): void {
    this.#names.set(name, value);
  }
}

/** How a block ended: at its end, or by a statement of the loop around it. */
type End = 'end' | 'break' | 'continue';

export function render(program: Program, globals: ReadonlyMap<string, Value>): string {
  const scope = new Scope(null);
  for (const [name, value] of globals) scope.set(name, value);
  return new Evaluation().block(nodes(program.body), new Scope(scope));
}

class Evaluation {
  #steps = 0;

  /** The text of a block of its own. */
  block(body: readonly Node[], scope: Scope): string {
    const out: string[] = [];
    this.#run(body, scope, out);
    return out.join('');
  }

  #run(body: readonly Node[], scope: Scope, out: string[]): End {
    for (const node of body) {
      const end = this.#statement(node, scope, out);
      if (end !== 'end') return end;
    }
    return 'end';
  }

  #count(): void {
    if (++this.#steps > MOST_STEPS) throw new Unsupported('a template that takes so long');
  }

  #statement(node: Node, scope: Scope, out: string[]): End {
    this.#count();
    switch (node.type) {
      case 'Comment':
        return 'end';
      case 'If':
        return this.#run(
          nodes(isTrue(this.#value(node['test'], scope)) ? node['body'] : node['alternate']),
          scope,
          out,
        );
      case 'For':
        this.#loop(node, scope, out);
        return 'end';
      case 'Break':
        return 'break';
      case 'Continue':
        return 'continue';
      case 'Set': {
        const value = node['value']
          ? this.#value(node['value'], scope)
          : this.block(nodes(node['body']), new Scope(scope));
        this.#assign(node['assignee'] as Node, value, scope);
        return 'end';
      }
      case 'Macro':
        scope.set(nameOf(node['name']), this.#macro(nodes(node['args']), nodes(node['body']), scope));
        return 'end';
      case 'FilterStatement':
        out.push(
          text(this.#filtered(this.block(nodes(node['body']), new Scope(scope)), node['filter'] as Node, scope)),
        );
        return 'end';
      case 'CallStatement': {
        const caller = this.#macro(nodes(node['callerArgs'] ?? []), nodes(node['body']), scope);
        const call = node['call'] as Node;
        const { positional, named } = this.#arguments(nodes(call['args']), scope);
        const called = this.#called(call['callee'] as Node, scope);
        out.push(text(called.call({ positional, named: new Map([...named, [CALLER, caller]]) })));
        return 'end';
      }
      default:
        out.push(text(this.#value(node, scope)));
        return 'end';
    }
  }

  #loop(node: Node, scope: Scope, out: string[]): void {
    const target = node['loopvar'] as Node;
    const source = node['iterable'] as Node;
    const filtered = source.type === 'SelectExpression';
    const all = items(this.#value(filtered ? source['lhs'] : source, scope));
    const kept = filtered
      ? all.filter((item) => {
          const inner = new Scope(scope);
          this.#assign(target, item, inner);
          return isTrue(this.#value(source['test'], inner));
        })
      : all;
    for (const [i, item] of kept.entries()) {
      this.#count();
      const inner = new Scope(scope);
      this.#assign(target, item, inner);
      const entries: [string, Value][] = [
        ['index', BigInt(i + 1)],
        ['index0', BigInt(i)],
        ['revindex', BigInt(kept.length - i)],
        ['revindex0', BigInt(kept.length - i - 1)],
        ['first', i === 0],
        ['last', i === kept.length - 1],
        ['length', BigInt(kept.length)],
        ['previtem', kept[i - 1]],
        ['nextitem', kept[i + 1]],
      ];
      const loop = new Namespace();
      for (const [name, value] of entries) loop.fields.set(name, value);
      inner.set('loop', loop);
      if (this.#run(nodes(node['body']), inner, out) === 'break') return;
    }
    if (kept.length === 0) this.#run(nodes(node['defaultBlock']), new Scope(scope), out);
  }

  #assign(target: Node, value: Value, scope: Scope): void {
    if (target.type === 'Identifier') {
      scope.set(nameOf(target), value);
      return;
    }
    if (target.type === 'TupleLiteral') {
      const [names, values] = [nodes(target['value']), items(value)];
      if (names.length !== values.length) throw new Error(`${values.length} values for ${names.length} names`);
      names.forEach((name, i) => this.#assign(name, values[i], scope));
      return;
    }
    const owner = target.type === 'MemberExpression' ? this.#value(target['object'], scope) : null;
    if (!(owner instanceof Namespace) || target['computed']) throw new Unsupported('setting what is not a namespace’s');
    owner.fields.set(nameOf(target['property']), value);
  }

  #macro(parameters: readonly Node[], body: readonly Node[], scope: Scope): Callable {
    const known = parameters.map((one) =>
      one.type === 'Identifier'
        ? { name: nameOf(one), fallback: null }
        : { name: nameOf(one['key']), fallback: one['value'] as Node },
    );
    return new Callable(({ positional, named }) => {
      const unknown = [...named.keys()].find((name) => name !== CALLER && !known.some((one) => one.name === name));
      if (unknown !== undefined || positional.length > known.length)
        throw new Unsupported('a macro that is called with other arguments than it has');
      const inner = new Scope(scope);
      if (named.has(CALLER)) inner.set(CALLER, named.get(CALLER));
      known.forEach(({ name, fallback }, i) => {
        const given = i < positional.length ? positional[i] : named.get(name);
        const isGiven = i < positional.length || named.has(name);
        inner.set(name, isGiven || fallback === null ? given : this.#value(fallback, inner));
      });
      return this.block(body, inner);
    });
  }

  #value(expression: unknown, scope: Scope): Value {
    const node = expression as Node;
    switch (node.type) {
      case 'StringLiteral':
        return node['value'] as string;
      case 'IntegerLiteral': {
        if (!Number.isSafeInteger(node['value'])) throw new Unsupported('a whole number of such a size');
        return BigInt(node['value'] as number);
      }
      case 'FloatLiteral':
        return node['value'] as number;
      case 'ArrayLiteral':
        return nodes(node['value']).map((one) => this.#value(one, scope));
      case 'TupleLiteral':
        return new Tuple(nodes(node['value']).map((one) => this.#value(one, scope)));
      case 'ObjectLiteral': {
        const entries = [...(node['value'] as ReadonlyMap<Node, Node>)];
        return new Map(
          entries.map(([key, value]) => {
            const name = this.#value(key, scope);
            if (typeof name !== 'string') throw new Unsupported(`a dict with ${typeName(name)} as a key`);
            return [name, this.#value(value, scope)];
          }),
        );
      }
      case 'Identifier':
        return scope.get(nameOf(node));
      case 'MemberExpression':
        return this.#member(node, scope);
      case 'CallExpression':
        return this.#call(node, scope);
      case 'UnaryExpression':
        return this.#unary(node, scope);
      case 'BinaryExpression':
        return this.#binary(node, scope);
      case 'FilterExpression':
        return this.#filtered(this.#value(node['operand'], scope), node['filter'] as Node, scope);
      case 'TestExpression': {
        const holds = applyTest(nameOf(node['test']), this.#value(node['operand'], scope), []);
        return holds !== node['negate'];
      }
      case 'SelectExpression':
        return isTrue(this.#value(node['test'], scope)) ? this.#value(node['lhs'], scope) : undefined;
      case 'Ternary': {
        const way = isTrue(this.#value(node['condition'], scope)) ? 'trueExpr' : 'falseExpr';
        return this.#value(node[way], scope);
      }
      default:
        throw new Unsupported(`the construct ${node.type}`);
    }
  }

  #filtered(value: Value, filter: Node, scope: Scope): Value {
    if (filter.type === 'Identifier') return applyFilter(nameOf(filter), value, NO_ARGUMENTS);
    return applyFilter(nameOf(filter['callee']), value, this.#arguments(nodes(filter['args']), scope));
  }

  #arguments(nodes: readonly Node[], scope: Scope): Arguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === 'KeywordArgumentExpression') named.set(nameOf(node['key']), this.#value(node['value'], scope));
      else positional.push(this.#value(node, scope));
    }
    return { positional, named };
  }

  #call(node: Node, scope: Scope): Value {
    const called = this.#called(node['callee'] as Node, scope);
    return called.call(this.#arguments(nodes(node['args']), scope));
  }

  #called(callee: Node, scope: Scope): Callable {
    const called = this.#value(callee, scope);
    if (called instanceof Callable) return called;
    throw new Unsupported(`the function ${nameOf(callee.type === 'MemberExpression' ? callee['property'] : callee)}`);
  }

  #member(node: Node, scope: Scope): Value {
    const owner = this.#value(node['object'], scope);
    const property = node['property'] as Node;
    if (owner === undefined) throw new Error('an attribute of an undefined value');
    if (property.type === 'SliceExpression') return this.#slice(owner, property, scope);
    if (!node['computed']) {
      const name = nameOf(property);
      if (owner instanceof Namespace) return owner.fields.get(name);
      return method(owner, name) ?? (owner instanceof Map ? owner.get(name) : noAttribute(owner, name));
    }
    const key = this.#value(property, scope);
    if (owner instanceof Map) {
      if (typeof key !== 'string') return undefined;
      return owner.has(key) ? owner.get(key) : method(owner, key);
    }
    if (typeof key === 'bigint' && (typeof owner === 'string' || Array.isArray(owner) || owner instanceof Tuple))
      return items(owner).at(Number(key));
    throw new Unsupported(`an element of ${typeName(owner)} by ${typeName(key)}`);
  }

  #slice(owner: Value, slice: Node, scope: Scope): Value {
    if (typeof owner !== 'string' && !Array.isArray(owner)) throw new Unsupported(`a part of ${typeName(owner)}`);
    const bound = (name: string): number | null => {
      const value = slice[name] ? this.#value(slice[name], scope) : null;
      if (value === null) return null;
      if (typeof value === 'bigint') return Number(value);
      throw new Unsupported(`a place that is ${typeName(value)}`);
    };
    const all = items(owner);
    const step = bound('step') ?? 1;
    if (step === 0) throw new Error('a slice in steps of 0');
    const clamp = (at: number): number => {
      const place = at < 0 ? at + all.length : at;
      return step > 0 ? Math.min(Math.max(place, 0), all.length) : Math.min(Math.max(place, -1), all.length - 1);
    };
    const [start, stop] = [bound('start'), bound('stop')];
    const first = start === null ? (step > 0 ? 0 : all.length - 1) : clamp(start);
    const end = stop === null ? (step > 0 ? all.length : -1) : clamp(stop);
    const picked: Value[] = [];
    for (let at = first; step > 0 ? at < end : at > end; at += step) picked.push(all[at]);
    return typeof owner === 'string' ? picked.map(text).join('') : picked;
  }

  #unary(node: Node, scope: Scope): Value {
    const value = this.#value(node['argument'], scope);
    const operator = (node['operator'] as Node)['value'];
    if (operator === 'not') return !isTrue(value);
    if (operator === '-' && (typeof value === 'bigint' || typeof value === 'number')) return -value;
    if (operator === '+' && (typeof value === 'bigint' || typeof value === 'number')) return value;
    throw new Unsupported(`${String(operator)} of ${typeName(value)}`);
  }

  #binary(node: Node, scope: Scope): Value {
    const operator = String((node['operator'] as Node)['value']);
    const left = this.#value(node['left'], scope);
    if (operator === 'and') return isTrue(left) ? this.#value(node['right'], scope) : left;
    if (operator === 'or') return isTrue(left) ? left : this.#value(node['right'], scope);
    return operate(operator, left, this.#value(node['right'], scope));
  }
}

const CALLER = 'caller';
const NO_ARGUMENTS: Arguments = { positional: [], named: new Map() };
const nodes = (list: unknown): readonly Node[] => list as readonly Node[];
const nameOf = (node: unknown): string => String((node as Node)['value']);

function noAttribute(owner: Value, name: string): never {
  throw new Unsupported(`the attribute ${name} of ${typeName(owner)}`);
}
