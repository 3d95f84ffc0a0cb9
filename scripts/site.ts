/**
 * Builds the documentation as a folder of web pages: `npm run site`, or `node scripts/site.ts FOLDER`. The pages need no server and
 * nothing from elsewhere, also not for the search.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, normalize, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Marked, type Token, type Tokens } from "marked";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A section of a page that the search finds. */
export type Found = {
  readonly url: string;
  readonly page: string;
  readonly title: string;
  readonly text: string;
};

type SitePage = {
  readonly path: string;
  readonly title: string;
  readonly html: string;
  readonly found: readonly Found[];
};

/** Gives the paths of the pages. */
export function buildSite(folder: string): readonly string[] {
  rmSync(folder, { recursive: true, force: true });
  const sources = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "AGENTS.md",
    ...markdownIn("docs"),
    ...markdownIn("docs/decisions"),
    ...markdownIn("examples"),
    ...foldersIn("examples").flatMap((name) => markdownIn(`examples/${name}`)),
  ];
  const known = new Set(sources);
  const files = new Set<string>();
  const nav = navigation(readFileSync(join(root, "README.md"), "utf8"));
  const pages = [...sources.map((source) => pageOf(source, known, files)), decisionsPage(sources)];
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const page of pages) write(page.path, whole(page, nav));
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file));
  }
  for (const name of ["site.css", "site.js"]) cpSync(join(root, "scripts/site", name), join(folder, name));
  // A script and not a document: a page that is opened from the disk may load scripts only.
  write("search.js", `window.SECTIONS = ${JSON.stringify(pages.flatMap(({ found }) => found))};\n`);
  return pages.map(({ path }) => path);
}

function markdownIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`)
    .toSorted();
}

function foldersIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder)).filter((name) => statSync(join(root, folder, name)).isDirectory());
}

/** The address of the page that is made from a file. */
function addressOf(source: string): string {
  return source === "README.md" ? "index.html" : source.replace(/\.md$/, ".html");
}

/** `files`: what pages lead to besides pages. It is copied. */
function pageOf(source: string, known: ReadonlySet<string>, files: Set<string>): SitePage {
  const ids = new Map<string, number>();
  const found: { url: string; page: string; title: string; text: string }[] = [];
  const path = addressOf(source);
  const text = withDecisions(readFileSync(join(root, source), "utf8"), source, known);
  const title = /^#\s+(.+)$/m.exec(text)?.[1] ?? basename(source, ".md");
  const page = plain(title);

  const target = (href: string): string | null => {
    if (/^(?:[a-z]+:|#)/i.test(href)) return href;
    const [file = "", mark] = href.split("#");
    const there = normalize(join(dirname(source), file)).replace(/\/$/, "");
    const hash = mark === undefined ? "" : `#${mark}`;
    for (const one of [there, `${there}/README.md`])
      if (known.has(one)) return relative(dirname(path) || ".", addressOf(one)) + hash;
    const isFile = existsSync(join(root, there)) && statSync(join(root, there)).isFile();
    if (!isFile) return null;
    files.add(there);
    return relative(dirname(path) || ".", there);
  };

  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }: Tokens.Heading) {
        const inner = this.parser.parseInline(tokens);
        const words = plain(tokens.map(({ raw }) => raw).join(""));
        const id = idOf(words, ids);
        found.push({ url: `${path}#${id}`, page, title: words, text: "" });
        const link = `<a class="mark" href="#${id}" aria-label="Link to this section">#</a>`;
        return `<h${depth} id="${id}">${inner} ${link}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const inner = this.parser.parseInline(tokens);
        const to = target(href);
        return to === null ? inner : `<a href="${escaped(to)}">${inner}</a>`;
      },
      image({ href, text: about }: Tokens.Image) {
        return `<img src="${escaped(target(href) ?? href)}" alt="${escaped(about)}">`;
      },
      html({ text: html }: Tokens.HTML | Tokens.Tag) {
        return html.replaceAll(/\b(src|srcset|href)="([^"]+)"/g, (_, name: string, href: string) => {
          return `${name}="${escaped(target(href) ?? href)}"`;
        });
      },
      table(token: Tokens.Table) {
        const row = (cells: readonly Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map(({ text, tokens }) => cell(text === "" ? "td" : tag, this.parser.parseInline(tokens))).join("")}</tr>`;
        const body = token.rows.map((cells) => row(cells, "td")).join("\n");
        // Wide tables scroll by themselves, also with the keyboard.
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>\n`;
      },
      code({ text: code }: Tokens.Code) {
        return `<pre tabindex="0"><code>${escaped(code)}</code></pre>\n`;
      },
    },
  });
  const tokens = marked.lexer(text);
  const html = marked.parser(tokens);
  collect(tokens, found);
  return { path, title: page, html, found };
}

/** The words of each section, for the search. */
function collect(tokens: readonly Token[], found: { text: string }[]): void {
  let place = -1;
  for (const token of tokens) {
    if (token.type === "heading") place += 1;
    else if (place >= 0 && found[place] !== undefined) found[place]!.text += ` ${plain(token.raw)}`;
  }
}

/** Pages name decisions without a link, because the package does not contain them. */
function withDecisions(text: string, source: string, known: ReadonlySet<string>): string {
  return text.replaceAll(/(?<!\[[^\]]*)\bdecision (\d+)\b/gi, (words: string, number: string) => {
    const start = `docs/decisions/${number.padStart(4, "0")}-`;
    const page = [...known].find((one) => one.startsWith(start));
    return page === undefined ? words : `[${words}](${relative(dirname(source), page)})`;
  });
}

function decisionsPage(sources: readonly string[]): SitePage {
  const items = sources
    .filter((source) => source.startsWith("docs/decisions/"))
    .map((source) => {
      const title = /^#\s+(.+)$/m.exec(readFileSync(join(root, source), "utf8"))?.[1] ?? source;
      return `<li><a href="${basename(addressOf(source))}">${escaped(plain(title))}</a></li>`;
    });
  const html = `<h1 id="decisions">Decisions</h1>\n<p>Why things are as they are.</p>\n<ul>${items.join("\n")}</ul>`;
  return { path: "docs/decisions/index.html", title: "Decisions", html, found: [] };
}

type Group = {
  readonly name: string;
  readonly links: readonly { readonly text: string; readonly path: string }[];
};

/** The groups of links at the end of the README, which say what there is to read. */
function navigation(readme: string): readonly Group[] {
  return [...readme.matchAll(/^\*\*(\w+)\*\*: ([^]*?)\n\n/gm)].map(([, name = "", list = ""]) => ({
    name,
    links: [
      ...[...list.matchAll(/\[([^\]]+)\]\(([^)#]+)\)/g)].map(([, text = "", href = ""]) => ({
        text,
        path: addressOf(href),
      })),
      ...(name === "Develop" ? [{ text: "decisions", path: "docs/decisions/index.html" }] : []),
    ],
  }));
}

/** As GitHub does it, so that links to sections lead to the same places. */
function idOf(words: string, ids: Map<string, number>): string {
  const plainId = words
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
  const before = ids.get(plainId) ?? 0;
  ids.set(plainId, before + 1);
  return before === 0 ? plainId : `${plainId}-${before}`;
}

/** Markdown without its marks. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*|]|^\s*```.*$|<[^>]+>/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function cell(tag: string, html: string): string {
  return `<${tag}>${html}</${tag}>`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function whole({ path, title, html }: SitePage, nav: readonly Group[]): string {
  const up = relative(dirname(path) || ".", ".") || ".";
  const links = nav
    .map(({ name, links: all }) => {
      const items = all.map(({ text, path: to }) => {
        const isHere = to === path ? ' aria-current="page"' : "";
        return `<li><a href="${up}/${to}"${isHere}>${escaped(text)}</a></li>`;
      });
      return `<p id="nav-${name}">${name}</p>\n<ul aria-labelledby="nav-${name}">${items.join("")}</ul>`;
    })
    .join("\n");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · Lockstep</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${up}/site.css">
<script src="${up}/site.js" data-root="${up}" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="home" href="${up}/index.html">Lockstep</a>
<search><label for="query">Search</label> <input id="query" type="search" autocomplete="off" placeholder="Search (press /)"></search>
</header>
<div id="found" role="region" aria-live="polite" aria-label="Search results" hidden></div>
<div class="columns">
<nav aria-label="Pages"><details open><summary>Pages</summary>
${links}
</details></nav>
<main id="content">
${html}
</main>
</div>
</body>
</html>
`;
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? join(root, "site"));
  const pages = buildSite(folder);
  console.log(`${pages.length} pages in ${folder}. Open ${join(folder, "index.html")} in a browser.`);
}
