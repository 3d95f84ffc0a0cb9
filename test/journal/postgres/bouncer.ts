/** A real PgBouncer before a server: connections are shared between transactions. */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./server.ts";

const PROGRAM = "/usr/sbin/pgbouncer";

export function hasBouncer(): boolean {
  return existsSync(PROGRAM);
}

export async function startBouncer(
  target: number,
): Promise<{ readonly url: string; readonly remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-bouncer-"));
  chmodSync(folder, 0o777);
  const port = await freePort();
  const settings = join(folder, "pgbouncer.ini");
  writeFileSync(
    settings,
    `[databases]
postgres = host=127.0.0.1 port=${target} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = ${folder}/log
`,
  );
  // It refuses to be started by root.
  const user = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const child = spawn(PROGRAM, [...user, settings], { stdio: "ignore" });
  for (let tries = 0; !(await isListening(port)); tries += 1) {
    if (tries > 600) throw new Error("PgBouncer did not start");
    await delay(100);
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    remove() {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isListening(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
