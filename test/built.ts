/** The command as it is published, made once for all tests: started from its sources it would take twice as long. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../scripts/bundle.ts";
import { bundlePage } from "../scripts/page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Returns the file to start. It lies below the repository, so that packages are found as they are from its sources. */
export async function builtCommand(): Promise<string> {
  const cache = join(root, "node_modules/.cache/lockstep-command");
  const folder = join(cache, fingerprint());
  const main = join(folder, "dist/bin/main.js");
  if (existsSync(main)) return main;
  // Another process may build the same at this moment: the first rename counts.
  const own = join(cache, `building-${process.pid}`);
  mkdirSync(own, { recursive: true });
  copyFileSync(join(root, "package.json"), join(own, "package.json"));
  for (const part of ["templates", "schemas"]) cpSync(join(root, part), join(own, part), { recursive: true });
  await bundle(join(own, "dist/bin"), "silent");
  await bundlePage(join(own, "dist/studio"));
  try {
    renameSync(own, folder);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  removeOld(cache);
  return main;
}

const PARTS = [
  "src/**/*.{ts,tsx,css,html,svg,json}",
  "bench/*.ts",
  "{templates,schemas}/**/*.*",
  "scripts/{bundle,eager,page}.ts",
];

/** Changes with the content of any source: times and folders may change while a test works beside the sources. */
function fingerprint(): string {
  const hash = createHash("sha256");
  for (const file of [...globSync(PARTS, { cwd: root }).toSorted(), "package.json"])
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update("\0");
  return hash.digest("hex").slice(0, 16);
}

const DAY = 24 * 60 * 60 * 1000;

/** Another process may be using a build of a moment ago. */
function removeOld(cache: string): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && Date.now() - found.mtimeMs > DAY)
      rmSync(path, { recursive: true, force: true });
  }
}
