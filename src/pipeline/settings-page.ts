/** `docs/settings.md`: every setting of a configuration in Markdown, from the schema that documents them. */

/** The parts of a JSON Schema that zod writes for a configuration. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minItems?: number;
}

/**
 * One section a top-level setting, one row a setting below it.
 * @param schema of a configuration, as `propel config --schema` prints it
 */
export function settingsPage(schema: unknown): string {
  const root = schema as Schema;
  const page = new SettingsPage(root);
  const sections = Object.entries(root.properties ?? {}).map(([key, setting]) =>
    page.section(key, setting, root.required?.includes(key) ?? false),
  );
  return `# Settings

Every setting of a configuration, written by \`propel config --reference\` from the schema that reads them; \`propel config --schema\` is the same for
programs. A dash: no default, the setting may be left out. Any setting can be given on the command line: \`--set train.steps=20\`.

${sections.join('\n')}`;
}

interface Row {
  readonly path: string;
  readonly setting: Schema;
  readonly required: boolean;
}

class SettingsPage {
  readonly #root: Schema;

  constructor(root: Schema) {
    this.#root = root;
  }

  section(key: string, given: Schema, required: boolean): string {
    const setting = this.#resolved(given);
    if (!this.#isSection(setting) && typeof setting.additionalProperties !== 'object') {
      return `## ${key}\n\n${this.#table([{ path: key, setting, required }])}`;
    }
    const heading = `## ${key}\n\n${setting.description === undefined ? '' : `${setting.description}\n\n`}`;
    const { additionalProperties: kinds } = setting;
    if (typeof kinds === 'object' && kinds.oneOf !== undefined) {
      return heading + kinds.oneOf.map((kind) => this.#kind(key, this.#resolved(kind))).join('\n');
    }
    return `${heading}${this.#table(this.#rows(key, setting))}`;
  }

  /** One kind of a map's values, told by the constant that its first property must be. */
  #kind(key: string, kind: Schema): string {
    const [[name, told] = ['', {} as Schema]] = Object.entries(kind.properties ?? {});
    const about = told.description === undefined ? '' : ` ${told.description}`;
    const rest = { ...kind, properties: Object.fromEntries(Object.entries(kind.properties ?? {}).slice(1)) };
    return `### ${name}: ${String(told.const)}\n\n${about.trim()}\n\n${this.#table(this.#rows(`${key}.<name>`, rest))}`;
  }

  /** The settings below a section, down to those that are no sections themselves. */
  #rows(path: string, section: Schema): Row[] {
    return Object.entries(section.properties ?? {}).flatMap(([key, given]) => {
      const setting = this.#resolved(given);
      const below = `${path}.${key}`;
      if (!this.#isSection(setting))
        return [{ path: below, setting, required: section.required?.includes(key) ?? false }];
      const own = setting.description === undefined ? [] : [{ path: below, setting, required: false }];
      return [...own, ...this.#rows(below, setting)];
    });
  }

  #isSection(setting: Schema): boolean {
    return setting.type === 'object' && Object.keys(setting.properties ?? {}).length > 0;
  }

  /** Whether a section below another repeats settings of a section at the top, which is where they are explained. */
  #repeats(key: string, setting: Schema): boolean {
    const top = Object.keys(this.#root.properties?.[key]?.properties ?? {});
    const own = Object.keys(setting.properties ?? {});
    return own.length > 0 && own.every((name) => top.includes(name));
  }

  #table(rows: readonly Row[]): string {
    const lines = rows.map(({ path, setting, required }) => {
      const key = path.slice(path.lastIndexOf('.') + 1);
      const repeats = path !== key && this.#repeats(key, setting);
      const isSection = this.#isSection(setting) && !repeats;
      const cells = [
        `\`${path}\``,
        isSection ? 'section' : repeats ? `settings of [${key}](#${key})` : cell(this.#values(setting)),
        isSection ? '' : required && setting.default === undefined ? 'must be given' : defaultOf(setting),
        cell(setting.description ?? ''),
      ];
      return `| ${cells.join(' | ')} |`;
    });
    return `| setting | values | default | what |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`;
  }

  /** What a setting may be, in words. */
  #values(given: Schema): string {
    const setting = this.#resolved(given);
    if (setting.const !== undefined) return `\`${JSON.stringify(setting.const)}\``.replaceAll('"', '');
    if (setting.enum !== undefined) return setting.enum.map((value) => `\`${String(value)}\``).join(', ');
    const either = setting.anyOf ?? setting.oneOf;
    if (either !== undefined) return [...new Set(either.map((one) => this.#values(one)))].join(' or ');
    switch (setting.type) {
      case 'integer':
        return `whole number${range(setting)}`;
      case 'number':
        return `number${range(setting)}`;
      case 'string':
        return 'text';
      case 'boolean':
        return '`true`, `false`';
      case 'null':
        return '`null`';
      case 'array':
        return `list of ${setting.items === undefined ? 'anything' : this.#values(setting.items)}`;
      case 'object': {
        const keys = Object.keys(setting.properties ?? {});
        if (keys.length > 0) return `{ ${keys.join(', ')} }`;
        return 'map';
      }
      default:
        return 'anything';
    }
  }

  #resolved(setting: Schema): Schema {
    if (setting.$ref === undefined) return setting;
    const { $ref, ...own } = setting;
    return { ...this.#root.$defs?.[$ref.replace('#/$defs/', '')], ...own };
  }
}

function defaultOf({ default: value }: Schema): string {
  if (value === undefined) return '–';
  return cell(`\`${typeof value === 'string' ? value : JSON.stringify(value)}\``);
}

/** ` from 1`, ` above 0`, ` from 0 to 1`; nothing where a bound is none but that of whole numbers in doubles. */
function range({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Schema): string {
  const bound = (value: number | undefined): value is number =>
    value !== undefined && Math.abs(value) !== Number.MAX_SAFE_INTEGER;
  return [
    bound(minimum) ? ` from ${minimum}` : '',
    bound(exclusiveMinimum) ? ` above ${exclusiveMinimum}` : '',
    bound(maximum) ? ` to ${maximum}` : '',
    bound(exclusiveMaximum) ? ` below ${exclusiveMaximum}` : '',
  ].join('');
}

/** Text that stays within one cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
}
