// Runs the suite, and says in one line which tests were left out and why. `--all` first installs the packages that are
// optional to a user: outside of the repository, which must do without them. Coding agents have a folder of their own,
// as they are large. Names of npm scripts run those instead of the whole suite.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const isAll = process.argv[2] === "--all";
const named = process.argv.slice(isAll ? 3 : 2);
const scripts = named.length > 0 ? named : ["test:pure", "test:process"];
const folder = mkdtempSync(join(tmpdir(), "lockstep-suite-"));
const env = { ...process.env, LOCKSTEP_LEFT_OUT: join(folder, "left-out") };

if (isAll) installAll();
process.exitCode = scripts.every((script) => run("npm", ["run", "--silent", script])) ? 0 : 1;
if (existsSync(env.LOCKSTEP_LEFT_OUT)) console.error(leftOut(readFileSync(env.LOCKSTEP_LEFT_OUT, "utf8")));
rmSync(folder, { recursive: true, force: true });

function leftOut(recorded) {
  const reasons = [...new Set(recorded.trimEnd().split("\n"))].toSorted((a, b) => a.localeCompare(b));
  const isPackages = reasons.some((reason) => reason.includes("@"));
  const hint = isPackages ? " `npm run test:all` installs the packages." : "";
  return `LEFT OUT are tests that need what is missing here: ${reasons.join("; ")}.${hint}`;
}

function installAll() {
  const wanted = JSON.parse(readFileSync(new URL("test-packages.json", import.meta.url), "utf8"));
  env.LOCKSTEP_PACKAGES ||= join(tmpdir(), "lockstep-packages");
  env.LOCKSTEP_AGENTS ||= join(tmpdir(), "lockstep-agents");
  install(env.LOCKSTEP_PACKAGES, wanted.packages);
  install(env.LOCKSTEP_AGENTS, wanted.agents);
}

function install(into, packages) {
  const missing = Object.entries(packages).filter(([name, version]) => versionIn(into, name) !== version);
  if (missing.length === 0) return;
  console.error(`lockstep: installing ${missing.map(([name]) => name).join(", ")} in ${into}`);
  const exact = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const flags = ["--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", into];
  // A download that breaks off is tried again.
  for (let tries = 1; tries <= 3; tries += 1) if (run("npm", ["install", ...flags, ...exact])) return;
  console.error(`lockstep: the packages could not be installed in ${into}; see npm's message above.`);
  process.exit(1);
}

function versionIn(into, name) {
  const file = join(into, "node_modules", name, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : null;
}

function run(command, args) {
  return spawnSync(command, args, { cwd: root, env, stdio: "inherit" }).status === 0;
}
