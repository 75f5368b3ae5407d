/** SVG as text: elements, escaping, and the look that a series has in every plot. */

/** One piece of markup, or many, which are not arguments of their own. */
type Markup = string | readonly string[];
type Attributes = Readonly<Record<string, string | number>>;

/** Text made safe for element content and quoted attributes. */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** An element; children are markup already, attributes are escaped, numbers rounded to a hundredth. */
export function element(name: string, attributes: Attributes, ...children: readonly Markup[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${attribute(value)}"`);
  return `<${name}${written.join('')}>${children.flat().join('')}</${name}>`;
}

function attribute(value: string | number): string {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : escapeXml(value);
}

/** Escaped text in an SVG `text` element. */
export function label(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return element('text', { x, y, ...attributes }, escapeXml(text));
}

/** What a pointer shows over a mark. */
export function hint(text: string): string {
  return element('title', {}, escapeXml(text));
}

/** A whole plot, as wide as its place allows; `description` is read to those who cannot see it. */
export function plot(width: number, height: number, description: string, ...children: readonly Markup[]): string {
  return element(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': description, class: 'plot' },
    children.flat(),
  );
}

/** Series differ in colour (by class), in dashes and in marker, so that none has to be told by colour alone. */
const DASHES = [
  '2 3',
  'none',
  '7 3',
  '1 3 6 3',
  '10 4 2 4',
  '4 2',
  '12 3',
  '3 5',
  '8 3 2 3 2 3',
  '5 5',
  '1 2',
  '14 4 4 4',
];

/** The class that colours a series: its number in the run's list of arms, or of probes. */
export function seriesClass(series: number): string {
  return `series-${series % DASHES.length}`;
}

export function seriesDash(series: number): string {
  return DASHES[series % DASHES.length]!;
}

/** A marker of the series: circle, square, triangle or diamond. */
export function marker(series: number, x: number, y: number, size: number, ...children: readonly string[]): string {
  const attributes = { class: `marker ${seriesClass(series)}` };
  const r = size / 2;
  switch (series % 4) {
    case 0:
      return element('circle', { ...attributes, cx: x, cy: y, r }, children);
    case 1:
      return element(
        'rect',
        { ...attributes, x: x - r * 0.9, y: y - r * 0.9, width: size * 0.9, height: size * 0.9 },
        children,
      );
    case 2:
      return polygon(
        attributes,
        [
          [x, y - r * 1.1],
          [x + r * 1.05, y + r * 0.8],
          [x - r * 1.05, y + r * 0.8],
        ],
        children,
      );
    default:
      return polygon(
        attributes,
        [
          [x, y - r * 1.2],
          [x + r * 1.2, y],
          [x, y + r * 1.2],
          [x - r * 1.2, y],
        ],
        children,
      );
  }
}

function polygon(attributes: Attributes, corners: readonly (readonly number[])[], children: readonly string[]): string {
  const points = corners.map((corner) => corner.map((value) => attribute(value)).join(',')).join(' ');
  return element('polygon', { ...attributes, points }, children);
}

/** A path through points. */
export function polyline(points: readonly (readonly [x: number, y: number])[], attributes: Attributes): string {
  const path = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${attribute(x)} ${attribute(y)}`).join('');
  return element('path', { d: path, ...attributes });
}
