/** A micro-world program while it is written: its lines, its variables, and the stream that decides. */

const INDENT = '    ';
const LETTERS = [...'ABCDEF'];

/** The types of parameters and variables: integers, lists of integers, strings. */
export type ValueType = 'integer' | 'list' | 'string';

/** One way to write something: its weight, a type that some variable must have for it, and the writing itself. */
export type Production<Written> = readonly [
  weight: number,
  needs: ValueType | null,
  write: (draft: Draft, depth: number) => Written,
];

/** A program being written: its lines, the variables in scope, and the stream that decides. */
export class Draft {
  readonly lines: string[] = [];
  readonly variables: Map<string, ValueType>;
  readonly random: () => number;

  constructor(random: () => number, variables: Map<string, ValueType>) {
    this.random = random;
    this.variables = variables;
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  choose<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)]!;
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  letters(count: number): string {
    let text = '';
    for (let position = 0; position < count; position++) text += this.choose(LETTERS);
    return text;
  }

  distinctLetters(count: number): string {
    const left = [...LETTERS];
    let text = '';
    for (let drawn = 0; drawn < count; drawn++) text += left.splice(this.integer(0, left.length - 1), 1)[0]!;
    return text;
  }

  /** A one-letter string literal. */
  letter(): string {
    return `'${this.choose(LETTERS)}'`;
  }

  has(type: ValueType): boolean {
    for (const other of this.variables.values()) if (other === type) return true;
    return false;
  }

  /** A variable of this type; there must be one. */
  variable(type: ValueType): string {
    return this.choose([...this.variables.keys()].filter((name) => this.variables.get(name) === type));
  }

  /** A type that some variable has, with integers once more than that. */
  type(): ValueType {
    return this.choose([...this.variables.values(), 'integer' as const]);
  }

  line(depth: number, text: string): void {
    this.lines.push(INDENT.repeat(depth) + text);
  }

  /** One production of the table whose needs are met, drawn by weight. */
  produce<Written>(table: readonly Production<Written>[], depth: number): Written {
    const possible = table.filter(([, needs]) => needs === null || this.has(needs));
    let remaining = this.random() * possible.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, , write] of possible) {
      remaining -= weight;
      if (remaining <= 0) return write(this, depth);
    }
    return possible.at(-1)![2](this, depth);
  }
}
