/** What every HTML file of propel shares: one page without outside parts, and tables. */
import { escapeXml } from './plots/svg.js';
import { STYLE } from './style.js';

/** A whole document; `body` is markup. */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeXml(title)} · propel</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}

/** What is wider than its place, scrolled with keys too; `name` is read to those who cannot see it. Content is markup. */
export function scrolled(name: string, content: string): string {
  return `<div class="scroll" role="group" tabindex="0" aria-label="${escapeXml(name)}">${content}</div>`;
}

/** Text as it is written, scrolled with keys too. Content is markup. */
export function preformatted(name: string, content: string): string {
  return `<pre role="group" tabindex="0" aria-label="${escapeXml(name)}">${content}</pre>`;
}

interface Heading {
  readonly heading: string;
  readonly meaning?: string;
}

/** Cells are text. `wide`: the column, if any, that holds running text. */
export function table(headings: readonly Heading[], rows: readonly (readonly string[])[], wide?: number): string {
  const head = headings.map(({ heading, meaning }, column) => {
    const title = meaning === undefined ? '' : ` title="${escapeXml(meaning)}"`;
    return `<th scope="col"${column === wide ? ' class="wide"' : ''}${title}>${escapeXml(heading)}</th>`;
  });
  const body = rows.map((cells) => {
    const written = cells.map((cell, column) => `<td${column === wide ? ' class="wide"' : ''}>${escapeXml(cell)}</td>`);
    return `<tr>${written.join('')}</tr>`;
  });
  return scrolled(
    `Table of ${headings.map(({ heading }) => heading).join(', ')}`,
    `<table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table>`,
  );
}
