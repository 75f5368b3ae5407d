/** What breaks the rules of the house, one line each; `sources` maps paths from the package's root to texts. */
export function violations(sources: ReadonlyMap<string, string>): string[];
