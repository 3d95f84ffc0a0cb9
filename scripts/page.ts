/** Bundles the page of the studio: one script, one style sheet, one HTML file and an icon, with nothing from outside. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";

const root = decodeURIComponent(new URL("..", import.meta.url).pathname);
const page = join(root, "src/studio/page");

/** The files of the page, by the names that the server gives them. */
export const PAGE_FILES = ["index.html", "page.css", "page.js", "more.js", "icon.svg"] as const;

/** What comes later may overrule what comes before. */
export const STYLES = [
  "base",
  "frame",
  "parts",
  "tables",
  "acting",
  "graph",
  "run",
  "runs",
  "talk",
  "why",
] as const;

/** Writes `PAGE_FILES` into `dir`. */
export async function bundlePage(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  await build({
    cwd: root,
    input: { page: join(page, "main.tsx") },
    platform: "browser",
    // As calls of `h`, which are shorter than those that the types are checked with; so tsconfig.json is left out.
    tsconfig: false,
    transform: {
      target: "es2024",
      jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" },
      inject: { h: ["preact", "h"], Fragment: ["preact", "Fragment"] },
    },
    output: {
      dir,
      format: "esm",
      chunkFileNames: "[name].js",
      minify: true,
      comments: { legal: true, annotation: false, jsdoc: false },
    },
    logLevel: "warn",
  });
  withLicence(join(dir, "page.js"));
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(page, name), join(dir, name));
  const styles = STYLES.map((name) => readFileSync(join(page, "styles", `${name}.css`), "utf8"));
  writeFileSync(join(dir, "page.css"), packed(styles.join("\n")));
}

/** Without comments and spaces that mean nothing. */
function packed(css: string): string {
  return (
    css
      .replaceAll(/\/\*[^]*?\*\//g, "")
      .replaceAll(/\s+/g, " ")
      .replaceAll(/ ?([{};,>]) ?/g, "$1")
      // A colon of a selector is never followed by a space.
      .replaceAll(": ", ":")
      .replaceAll(";}", "}")
      .trim()
  );
}

/** Preact is inside the published file, so its licence is too. */
function withLicence(file: string): void {
  const licence = readFileSync(join(root, "node_modules/preact/LICENSE"), "utf8").trim();
  writeFileSync(
    file,
    `/*! Contains Preact.\n${licence.replaceAll("*/", "* /")}\n*/\n${readFileSync(file, "utf8")}`,
  );
}
