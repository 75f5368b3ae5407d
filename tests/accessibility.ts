/** What axe finds wrong with a page for readers with a keyboard or a screen reader. */
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import type { AxeResults } from 'axe-core';
import { JSDOM } from 'jsdom';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * One line a violation: the rule and the element. The DOM has no layout, so contrast is not looked at, and whether something scrolls is
 * told by what it is: every element that may scroll must take the focus.
 */
export async function accessibilityFaults(html: string): Promise<string[]> {
  const { window } = new JSDOM(html, { runScripts: 'outside-only', pretendToBeVisual: true });
  window.eval(AXE);
  const { axe } = window as unknown as { axe: { run(context: unknown, options: object): Promise<AxeResults> } };
  const { violations } = await axe.run(window.document, { rules: { 'color-contrast': { enabled: false } } });
  const unreachable = [...window.document.querySelectorAll('.scroll, pre')].filter(
    (element) => element.getAttribute('tabindex') !== '0',
  );
  window.close();
  return [
    ...violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`)),
    ...unreachable.map((element) => `scrolls without the focus: ${element.outerHTML.slice(0, 80)}`),
  ];
}
