// Builds what is published into dist/: the library as modules with their types, the command as one bundle.
//
// The command is bundled because starting is what it does most: hundreds of small files cost a run of three steps more
// than its work does. The library is not: its users may want to look inside, and pay once.
import { spawnSync } from "node:child_process";
import { chmodSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundleCommand } from "./bundle.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });

const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"];
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
rmSync(`${root}dist/cli`, { recursive: true, force: true });

await bundleCommand(root, { comments: { legal: true, annotation: false, jsdoc: false } }, "warn");
chmodSync(`${root}dist/bin/main.js`, 0o755);
