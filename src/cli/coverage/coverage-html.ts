/** Coverage as one HTML file: the drawing, the table of kinds and every element. No script, nothing from outside. */
import { ELEMENT_KINDS } from "../../flow/test-settings.ts";
import { percent, type Coverage, type Covered } from "../../proof/coverage.ts";
import type { Outline } from "../../tell/outline.ts";
import { escapeXml, renderSvg } from "../graph/graph-svg.ts";

/** `outline`: with hits; null: the flow is too large for a drawing. */
export function coverageHtml(coverage: Coverage, outline: Outline | null): string {
  const { agent, digest, totals } = coverage;
  const kinds = ELEMENT_KINDS.filter((kind) => totals[kind].of > 0);
  const title = `Coverage of ${agent}`;
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${escapeXml(title)}</title>`,
    STYLE,
    "</head>",
    "<body>",
    `<h1>${escapeXml(title)}</h1>`,
    `<p>Flow ${escapeXml(digest.slice(0, 12))}</p>`,
    "<table><thead><tr><th>kind</th><th>covered</th><th>share</th></tr></thead><tbody>",
    ...kinds.map((kind) => {
      const { covered, of } = totals[kind];
      const name = covered === of ? "hit" : "gap";
      return `<tr class="${name}"><td>${kind}</td><td>${covered} of ${of}</td><td>${percent(totals[kind])} %</td></tr>`;
    }),
    "</tbody></table>",
    ...(outline === null
      ? ["<p>The flow is too large for a drawing.</p>"]
      : [`<div class="drawing">${renderSvg(outline)}</div>`]),
    ...kinds.flatMap((kind) => elementTable(kind, coverage)),
    "</body>",
    "</html>",
  ].join("\n");
}

function elementTable(kind: string, { elements }: Coverage): readonly string[] {
  return [
    `<h2>${kind}</h2>`,
    "<table><thead><tr><th>hits</th><th>element</th><th>place</th><th>shown by</th></tr></thead><tbody>",
    ...elements.filter((one) => one.kind === kind).map(elementRow),
    "</tbody></table>",
  ];
}

function elementRow({ id, file, line, hits, by, ignored }: Covered): string {
  const name = ignored !== undefined ? "ignored" : hits > 0 ? "hit" : "gap";
  const place = file === null ? "" : `${file}:${line}`;
  const few = by.slice(0, MOST_NAMES);
  const more = by.length > few.length ? [`and ${by.length - few.length} more`] : [];
  const about = ignored === undefined ? [...few, ...more].join(" · ") : `ignored: ${ignored}`;
  return `<tr class="${name}"><td>${hits}</td><td>${escapeXml(id)}</td><td>${escapeXml(place)}</td><td>${escapeXml(about)}</td></tr>`;
}

const MOST_NAMES = 5;

const STYLE = `<style>
body { font: 14px/1.5 system-ui, sans-serif; color: #24292f; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: 0 0 1.5rem } th { text-align: left; font-weight: 600 }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #d0d7de; vertical-align: top } td:first-child { white-space: nowrap }
tr.hit td:first-child { border-left: 4px solid #2da44e } tr.gap td:first-child { border-left: 4px solid #c00000 }
tr.gap { background: #fff1f0 } tr.ignored { color: #57606a } tr.ignored td:first-child { border-left: 4px solid #d0d7de }
.drawing { overflow: auto; border: 1px solid #d0d7de; margin: 1rem 0 }
</style>`;
