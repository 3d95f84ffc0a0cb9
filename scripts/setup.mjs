// Installs the dependencies when they are missing or older than the lockfile. Runs before every npm script that needs
// them, on any Node from 18 on, so it uses nothing but Node itself.
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const lockfile = `${root}package-lock.json`;
const installed = `${root}node_modules/.package-lock.json`;

// A link belongs to another copy of the project: what is installed there is not ours to replace.
const isLinked = lstatSync(`${root}node_modules`, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

if (!isLinked && (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lockfile).mtimeMs)) {
  console.error("lockstep: installing dependencies (once) …");
  const npm = process.env.npm_execpath;
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = npm
    ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: ["ignore", 2, 2] })
    : spawnSync("npm", args, { cwd: root, stdio: ["ignore", 2, 2], shell: process.platform === "win32" });
  if (status !== 0) {
    console.error("lockstep: `npm ci` failed; see its message above.");
    process.exit(1);
  }
}
