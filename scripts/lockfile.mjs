// Completes package-lock.json with the optional packages of other platforms, by name and version. npm leaves out those
// that the registry in use does not offer, and then refuses the file in `npm ci`. Run after changing dependencies.
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
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
