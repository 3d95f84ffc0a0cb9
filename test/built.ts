/** The command as it is published, made once for all tests: started from its sources it would take twice as long. */
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Gives the file to start. It lies below the repository, so that packages are found as they are from its sources. */
export async function builtCommand(): Promise<string> {
  const cache = join(root, "node_modules/.cache/lockstep-command");
  const folder = join(cache, fingerprint());
  const main = join(folder, "dist/bin/main.js");
  if (existsSync(main)) return main;
  // Whoever else makes it at this moment makes the same.
  const own = `${cache}-${process.pid}`;
  mkdirSync(own, { recursive: true });
  copyFileSync(join(root, "package.json"), join(own, "package.json"));
  await build({
    cwd: root,
    input: "src/cli/main.ts",
    platform: "node",
    external: [/^node:/, /^@ai-sdk\//],
    output: { dir: join(own, "dist/bin"), format: "esm" },
    logLevel: "silent",
  });
  mkdirSync(cache, { recursive: true });
  for (const other of readdirSync(cache))
    if (join(cache, other) !== folder) rmSync(join(cache, other), { recursive: true, force: true });
  try {
    renameSync(own, folder);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  return main;
}

/** Another one once any source has changed. */
function fingerprint(): string {
  const hash = createHash("sha256");
  for (const file of [...globSync("src/**/*", { cwd: root }).toSorted(), "package.json"]) {
    const { size, mtimeMs } = statSync(join(root, file));
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}
