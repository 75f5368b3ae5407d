/** The report's style sheet: light or dark as the reader's system is, colours that differ for colour-blind readers too (Okabe and Ito). */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #ffffff; --raised: #f5f6f8; --ink: #1c2127; --soft: #59626e; --rule: #d9dde3; --grid: #e6e9ed;
  --shade: rgba(0, 114, 178, .09); --good: #00704f; --bad: #a3400a;
  --s0: #6b7480; --s1: #0072b2; --s2: #d55e00; --s3: #00835f; --s4: #9b4f96; --s5: #876b00;
  --s6: #b3003c; --s7: #3d52b8; --s8: #4f7d00; --s9: #b8527f; --s10: #007c8a; --s11: #7d5a45;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --raised: #1d2127; --ink: #e7eaee; --soft: #a4adb8; --rule: #363c45; --grid: #2a2f37;
    --shade: rgba(86, 180, 233, .13); --good: #4cc9a0; --bad: #ff9b5e;
    --s0: #a1aab5; --s1: #56b4e9; --s2: #ff9147; --s3: #2fc79b; --s4: #d596cf; --s5: #e0c443;
    --s6: #ff6b8f; --s7: #97a6ff; --s8: #a4d65e; --s9: #f0a3c4; --s10: #4fd0dd; --s11: #cfae97;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1160px; padding: 32px 24px 64px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 44px 0 6px; padding-top: 14px; border-top: 1px solid var(--rule); }
h3 { font-size: 15px; margin: 22px 0 8px; }
p { margin: 4px 0 12px; max-width: 78ch; }
.summary { margin: 8px 0 12px; padding-left: 20px; }
.soft, figcaption span { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; margin: 10px 0 8px; }
th, td { padding: 6px 8px; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; }
th[title] { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:first-child { font-weight: 600; }
th.wide, td.wide { text-align: left; }
td small { display: block; color: var(--soft); font-size: 11.5px; }
.detailed { font-size: 13px; }
.detailed th { white-space: normal; }
.detailed th, .detailed td { padding: 5px 6px; }
.detailed td { vertical-align: top; }
td small { display: block; color: var(--soft); font-size: 11.5px; }
.detailed td { vertical-align: top; }
td.wide { white-space: normal; color: var(--soft); }
td.heat { background: color-mix(in srgb, var(--s1) var(--heat), var(--paper)); }
th[scope="colgroup"] { text-align: center; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 28px 36px; margin-top: 18px; }
figure { margin: 0; min-width: 0; }
figure.wide { max-width: 760px; margin-top: 18px; }
figure.square { max-width: 560px; margin-top: 18px; }
figcaption { margin-bottom: 6px; }
figcaption b { display: block; }
figcaption span { font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; margin: 4px 0 6px; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg { flex: none; }
svg.plot { display: block; width: 100%; height: auto; font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
svg text { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .tick, svg .axis-name, svg .note { fill: var(--soft); }
svg .heading { font-weight: 600; font-size: 13px; }
svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--soft); }
svg .diagonal { stroke: var(--soft); stroke-dasharray: 3 4; }
svg .shade { fill: var(--shade); }
.series-0 { --series: var(--s0); } .series-1 { --series: var(--s1); } .series-2 { --series: var(--s2); }
.series-3 { --series: var(--s3); } .series-4 { --series: var(--s4); } .series-5 { --series: var(--s5); }
.series-6 { --series: var(--s6); } .series-7 { --series: var(--s7); } .series-8 { --series: var(--s8); }
.series-9 { --series: var(--s9); } .series-10 { --series: var(--s10); } .series-11 { --series: var(--s11); }
svg .curve, svg .level { fill: none; stroke: var(--series); stroke-width: 2; stroke-linejoin: round; }
svg .raw { stroke-width: 1; opacity: .38; }
svg .level { stroke-width: 1.5; }
svg .whisker { stroke: var(--series); stroke-width: 2.5; stroke-linecap: round; }
svg .thin { stroke-width: 1; opacity: .6; }
svg .marker { fill: var(--series); stroke: var(--paper); stroke-width: 1.5; }
svg .bar { fill: var(--series); }
svg .heat { fill: var(--s1); stroke: var(--grid); }
svg .cell { font-size: 11.5px; }
svg .frame { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; }
svg .pale { opacity: .3; }
svg .target { fill: transparent; }
.tasks { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(330px, 100%), 1fr)); gap: 12px; }
.task { background: var(--raised); border: 1px solid var(--rule); border-radius: 6px; padding: 10px 12px; min-width: 0; display: flex; flex-direction: column; }
.task footer { margin-top: auto; }
.task pre { margin: 0 0 8px; overflow-x: auto; font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.task .output { color: var(--soft); }
.task footer { display: flex; justify-content: space-between; gap: 12px; font-size: 13px; color: var(--soft); }
.task .verdict { font-weight: 600; text-align: right; }
.in-band { color: var(--good); }
.invalid { color: var(--bad); }
details { margin-top: 16px; }
summary { cursor: pointer; font-weight: 600; }
details pre { background: var(--raised); border: 1px solid var(--rule); border-radius: 6px; padding: 12px; overflow-x: auto; font-size: 13px; }
@media print { body { max-width: none; padding: 0; } figure, .task { break-inside: avoid; } }
`;
