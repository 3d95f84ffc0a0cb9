// Builds what is published into dist/: the library as modules with their types, the command as one bundle,
// and the page of the studio.
//
// The library is not bundled: those who import it may want to look inside, and pay once. It holds only what its two
// entry points import; what only the command uses is in the bundle.
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.ts";
import { bundlePage } from "./page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });

const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"];
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);

await bundle(`${root}dist/bin`);
await bundlePage(`${root}dist/studio`);
chmodSync(`${root}dist/bin/main.js`, 0o755);
