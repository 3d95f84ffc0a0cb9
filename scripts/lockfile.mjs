// Completes package-lock.json with the optional packages of other platforms, by name and version. npm leaves out those
// that the registry in use does not offer, and then refuses the file in `npm ci`. Run after changing dependencies.
//
// With --integrity it also asks the registry in use for the digests of entries that have none. Where it offers all of
// the packages, every entry is pinned by its content afterwards; test/lockfile.test.ts says which may go without.
// `resolved` stays out: which registry a machine uses is its own affair, and the digest holds wherever a package is from.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
const file = new URL("../package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
const OS = [
  "android",
  "darwin",
  "freebsd",
  "linux",
  "openharmony",
  "win32",
  "aix",
  "sunos",
  "netbsd",
  "openbsd",
];
const CPU = ["arm64", "x64", "ia32", "ppc64", "riscv64", "s390x", "wasm32", "loong64", "mips64el", "arm"];

for (const about of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(about.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`;
    if (path in lock.packages) continue;
    const words = name.split("/").at(-1).split("-");
    const os = OS.filter((word) => words.includes(word));
    const cpu = CPU.filter((word) => words.includes(word)).slice(0, 1);
    lock.packages[path] = {
      version,
      ...(cpu.length > 0 && { cpu }),
      ...(about.dev && { dev: true }),
      optional: true,
      ...(os.length > 0 && { os }),
      ...(words.at(-1).startsWith("musl") && { libc: ["musl"] }),
    };
  }
}
const isAsking = process.argv.includes("--integrity");
const unpinned = Object.entries(lock.packages).filter(
  ([path, about]) => path !== "" && !about.integrity && !about.link,
);
const unknown = unpinned.filter(([path, about]) => {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const integrity = isAsking ? askFor(`${name}@${about.version}`) : null;
  if (integrity !== null) about.integrity = integrity;
  return integrity === null;
});
if (unknown.length > 0)
  console.error(
    `${unknown.length} entries have no integrity; fill them in with --integrity where the registry offers them.`,
  );

function askFor(wanted) {
  try {
    const options = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    const answer = execFileSync("npm", ["view", "--json", "--", wanted, "dist.integrity"], options).trim();
    const integrity = answer === "" ? null : JSON.parse(answer);
    return /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity) ? integrity : null;
  } catch {
    return null;
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
