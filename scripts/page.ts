/** Bundles the page of the studio: one script, one style sheet, one HTML file and an icon, with nothing from outside. */
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";

const root = decodeURIComponent(new URL("..", import.meta.url).pathname);
const page = join(root, "src/studio/page");

/** The files of the page, by the names that the server gives them. */
export const PAGE_FILES = ["index.html", "page.css", "page.js", "icon.svg"] as const;

/** Writes `PAGE_FILES` into `dir`. */
export async function bundlePage(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  await build({
    cwd: root,
    input: { page: join(page, "main.tsx") },
    platform: "browser",
    tsconfig: join(page, "tsconfig.json"),
    transform: { target: "es2024" },
    output: { dir, format: "esm", minify: true, comments: { legal: true, annotation: false, jsdoc: false } },
    logLevel: "warn",
  });
  withLicence(join(dir, "page.js"));
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(page, name), join(dir, name));
  const styles = ["page.css", ...globSync("styles/*.css", { cwd: page }).toSorted()];
  writeFileSync(
    join(dir, "page.css"),
    styles.map((name) => readFileSync(join(page, name), "utf8")).join("\n"),
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
