/** `report.html` of a comparison: one file without outside parts, tables like the paper's, figures and claims. */
import { writeFileAtomic } from '../store/files.js';
import {
  collapseColumns,
  costColumns,
  DIVERSITY_COLUMNS,
  FAMILY_COLUMNS,
  MAIN_COLUMNS,
  withFlags,
  rateCell,
} from './comparison-columns.js';
import type { Cell, ComparisonColumn } from './comparison-columns.js';
import { comparisonFigures } from './comparison-figures.js';
import { armRoles } from './comparison.js';
import type { ArmRoles, Claim, ComparedArm, Comparison, Verdict } from './comparison.js';
import { count } from './format.js';
import { htmlPage, scrolled } from './page.js';
import { escapeXml } from './plots/svg.js';
import { typesOf } from './results.js';

/** Write the report, whole or not at all. */
export function writeComparisonReport(path: string, comparison: Comparison): void {
  writeFileAtomic(path, comparisonHtml(comparison));
}

export function comparisonHtml(comparison: Comparison): string {
  const { name, seeds, arms, band } = comparison;
  const roles = armRoles(arms);
  const figures = comparisonFigures(arms);
  const body = `<h1>${escapeXml(name)}</h1>
<p class="soft">${arms.length} arms under ${seeds.length} ${seeds.length === 1 ? 'seed' : 'seeds'}: ${seeds.map(seedLink).join(', ')}.
A task is on the frontier, “in band”, when the solver passes ${band.min} to ${band.max} of ${band.of} attempts. Every rate was measured by
the solver on fresh generations.</p>
${missingNote(comparison)}
${claimsSection(comparison.claims)}
<h2>Arms</h2>
${table(withFlags(MAIN_COLUMNS, arms), arms)}
<p class="soft">Large: means over seeds. Small: every seed, or the Wilson 95% interval of the counts of all seeds together, which takes
seeds for alike; “t” is Student’s 95% interval of the mean over seeds, which does not, and is wide with few. Hover over a cell for its
counts.</p>
${figures.frontier}
${costSection(arms, roles, figures.cost)}
${collapseSection(roles, figures.topics)}
<h3>Diversity of valid tasks</h3>
${table(DIVERSITY_COLUMNS, arms)}
${familySection(roles, figures.families)}
${typeSection(arms, figures.types)}
${armList(arms)}`;
  return htmlPage(name, body);
}

function seedLink(seed: number): string {
  return `<a href="seed-${seed}/report.html">${seed}</a>`;
}

function missingNote({ missing }: Comparison): string {
  if (missing.length === 0) return '';
  const items = missing.map(({ seed, why }) => `<li>Seed ${seed}: ${escapeXml(why)}</li>`);
  return `<p class="invalid">Not in this report:</p><ul class="summary">${items.join('')}</ul>`;
}

const VERDICT_CLASS: Readonly<Record<Verdict, string>> = {
  holds: 'in-band',
  'does not hold': 'invalid',
  'cannot be judged': 'soft',
};

function claimsSection(claims: readonly Claim[]): string {
  const holding = claims.filter(({ verdict }) => verdict === 'holds').length;
  const open = claims.filter(({ verdict }) => verdict === 'cannot be judged').length;
  const rows = claims.map(({ claim, verdict, figures }) => {
    return `<tr><td class="${VERDICT_CLASS[verdict]}">${verdict}</td><td class="wide">${escapeXml(claim)}</td><td class="wide">${escapeXml(figures)}</td></tr>`;
  });
  return `<h2>Claims</h2>
<p class="soft">${holding} of ${claims.length} hold${open === 0 ? '' : `, ${open} cannot be judged from these numbers`}. “Pooled” is over the generations of all seeds together; intervals are Wilson 95%.</p>
${scrolled(
  'Table of claims',
  `<table><thead><tr><th scope="col">verdict</th><th scope="col" class="wide">claim, with its rule</th><th scope="col" class="wide">figures</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table>`,
)}`;
}

function costSection(arms: readonly ComparedArm[], roles: ArmRoles, figure: string): string {
  if (figure === '') return '';
  const { solver, solverMatchedTrials: matched } = roles;
  const note =
    solver === undefined
      ? 'No arm has the solver in the loop.'
      : `${solver.name} attempts every valid task of every step; ${matched === undefined ? 'no arm is held to as many trials as the labels cost.' : `${matched.name} stops when its trials are spent.`}`;
  const trained = arms.filter(({ reward, base }) => reward !== 'none' && base === roles.base.name);
  return `<h2>Probe against solver in the loop</h2>
<p class="soft">${escapeXml(note)}</p>
${table(costColumns(solver, matched), trained)}
${figure}`;
}

function collapseSection({ base, single, mitigations }: ArmRoles, figure: string): string {
  if (single === undefined) return `<h2>Mode collapse</h2>\n${figure}`;
  return `<h2>Mode collapse</h2>
<p class="soft">How far generations crowd into one topic, and how much of ${escapeXml(single.name)}’s lift each arm against it keeps.</p>
${table(collapseColumns(single), [base, single, ...mitigations])}
${figure}`;
}

function familySection({ base, single, transfers }: ArmRoles, figure: string): string {
  if (transfers.length === 0) return '';
  const others = [...new Set(transfers.flatMap(({ base: own, arm }) => [own, arm]))];
  return `<h2>Across families</h2>
<p class="soft">A probe on one family’s hidden states rewards another family’s generator, with no new labels and no tuning.</p>
${table(FAMILY_COLUMNS, [base, ...(single === undefined ? [] : [single]), ...others])}
${figure}`;
}

/** Types as groups of columns, arms as rows. */
function typeSection(arms: readonly ComparedArm[], figure: string): string {
  const types = typesOf(arms);
  if (types.length < 2) return '';
  const columns: ComparisonColumn[] = types.flatMap((type) => {
    const rates = [
      ['in band/all', 'frontierRate'],
      ['in band/valid', 'inBandOfValid'],
      ['validity', 'validity'],
    ] as const;
    return rates.map(([heading, key]) => ({
      heading: `${type} ${heading}`,
      meaning: `Of ${type}: the mean over seeds and the pooled Wilson 95% interval.`,
      cell: ({ byType, n }: ComparedArm): Cell => {
        const ofType = byType[type];
        return ofType === undefined ? { text: '–', title: `none of ${count(n)}` } : rateCell(ofType[key]);
      },
    }));
  });
  return `<h2>Task types</h2>
${table([MAIN_COLUMNS[0]!, ...columns], arms)}
${figure}`;
}

function armList(arms: readonly ComparedArm[]): string {
  const items = arms.map((arm) => {
    const { text, title } = MAIN_COLUMNS[0]!.cell(arm);
    const policy = arm.policy === null ? '' : `; policy ${arm.policy}`;
    return `<li><b>${escapeXml(text)}</b>: ${escapeXml(`${title}${policy}; compared with ${arm.base}; n = ${count(arm.n)}`)}</li>`;
  });
  return `<details><summary>What each arm is</summary><ul class="summary">${items.join('\n')}</ul></details>`;
}

function table(columns: readonly ComparisonColumn[], arms: readonly ComparedArm[]): string {
  const head = columns.map(
    ({ heading, meaning }) => `<th scope="col" title="${escapeXml(meaning)}">${escapeXml(heading)}</th>`,
  );
  const body = arms.map((arm) => `<tr>${columns.map(({ cell }) => cellHtml(cell(arm))).join('')}</tr>`);
  return scrolled(
    `Table of ${columns.map(({ heading }) => heading).join(', ')}`,
    `<table class="detailed"><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table>`,
  );
}

function cellHtml({ text, detail, title }: Cell): string {
  const small = detail === undefined ? '' : `<small>${escapeXml(detail)}</small>`;
  return `<td title="${escapeXml(title)}">${escapeXml(text)}${small}</td>`;
}
