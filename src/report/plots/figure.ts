/** A plot's frame: caption and legend. */
import { element, escapeXml, marker, seriesClass, seriesDash } from './svg.js';

export interface LegendEntry {
  readonly name: string;
  readonly series: number;
  readonly mark: 'bar' | 'line' | 'marker' | 'whisker' | 'line-marker';
}

export function legendList(entries: readonly LegendEntry[]): string {
  return `<ul class="legend">${entries.map((entry) => `<li>${swatch(entry)}${escapeXml(entry.name)}</li>`).join('')}</ul>`;
}

function swatch({ series, mark }: LegendEntry): string {
  const width = mark === 'line' || mark === 'line-marker' ? 26 : 13;
  const line = element('line', {
    x1: 0,
    y1: 7,
    x2: width,
    y2: 7,
    class: `curve ${seriesClass(series)}`,
    'stroke-dasharray': seriesDash(series),
  });
  const whisker = element('line', { x1: 6.5, y1: 1, x2: 6.5, y2: 13, class: `whisker ${seriesClass(series)}` });
  const bar = element('rect', { x: 0, y: 1, width, height: 12, class: `bar ${seriesClass(series)}` });
  const point = marker(series, width / 2, 7, 8);
  const drawn = { bar, line, marker: point, whisker: whisker + point, 'line-marker': line + point }[mark];
  return element('svg', { width, height: 14, 'aria-hidden': 'true' }, drawn);
}

/** A plot with its title, a note and a legend; `className` is `wide`, `square` or empty. */
export function figure(className: string, title: string, note: string, legend: string, svg: string): string {
  const attribute = className === '' ? '' : ` class="${className}"`;
  return `<figure${attribute}><figcaption><b>${escapeXml(title)}</b><span>${escapeXml(note)}</span></figcaption>${legend}${svg}</figure>`;
}
