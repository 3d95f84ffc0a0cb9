/**
 * A network that has nothing but loopback, in which every attempt to reach anything else is counted: by the kernel, which
 * has no way for it and keeps a record of that. Whoever asks for a name is counted too, because the name server is one
 * that cannot be reached.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { needs } from "../needs.ts";

export type Offline = {
  readonly status: number | null;
  readonly output: string;
  /** Connections and packets to elsewhere that were tried. */
  readonly attempts: number;
};

export function offline(command: readonly string[], env: NodeJS.ProcessEnv = process.env): Offline {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-offline-"));
  const [names, counts] = [join(folder, "resolv.conf"), join(folder, "counts")];
  const { NODE_TEST_CONTEXT: _, ...plain } = env;
  try {
    // An address that is kept for documentation: nobody has it.
    writeFileSync(names, "nameserver 192.0.2.1\noptions timeout:1 attempts:1\n");
    const told = '"$@"; code=$?; cat /proc/net/snmp /proc/net/snmp6 > "$COUNTS"; exit $code';
    const wrapped = [...ISOLATED, ...nameServer(names), "sh", "-c", told, "sh", ...command];
    const ran = spawnSync("bwrap", wrapped, {
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
      env: { ...plain, COUNTS: counts, LOCKSTEP_LOOPBACK_ONLY: "1" },
    });
    return {
      status: ran.status,
      output: ran.stdout + ran.stderr,
      attempts: countIn(readFileSync(counts, "utf8")),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const ISOLATED = "--dev-bind / / --unshare-net --die-with-parent".split(" ");

function nameServer(file: string): readonly string[] {
  try {
    return ["--ro-bind", file, realpathSync("/etc/resolv.conf")];
  } catch {
    return []; // without one, names are asked of this machine
  }
}

/** `Ip:` stands twice in the table of IPv4: before the names and before the values. IPv6 has a name on each line. */
function countIn(counters: string): number {
  const [names = [], values = []] = counters
    .split("\n")
    .filter((line) => line.startsWith("Ip:"))
    .map((line) => line.split(" "));
  const four = Number(values[names.indexOf("OutNoRoutes")]);
  const six = Number(/^Ip6OutNoRoutes\s+(\d+)$/m.exec(counters)?.[1] ?? 0);
  assert.ok(Number.isInteger(four), "the kernel counts what it has no way for");
  return four + six;
}

export const isolation = needs(
  spawnSync("bwrap", [...ISOLATED, "true"]).status === 0,
  "a network of one's own: bubblewrap is not installed, or may not make namespaces",
);

/** Whether this process is inside already. */
const isInside = process.env.LOCKSTEP_LOOPBACK_ONLY === "1";

/**
 * All tests of a file, run once more by itself where there is only loopback; where that cannot be had, just run.
 * `curious`: programs of others, which may try to reach more than that.
 */
export function suiteOffline(
  name: string,
  url: string,
  { skip, curious = false }: { readonly skip: string | false; readonly curious?: boolean },
  suite: () => void,
): void {
  if (isInside || skip !== false || isolation.skip !== false) {
    describe(name, { skip }, suite);
    return;
  }
  test(`${name}, with no network but loopback`, () => {
    const ran = offline([process.execPath, "--test", "--test-reporter=spec", fileURLToPath(url)]);
    assert.equal(ran.status, 0, ran.output);
    assert.match(ran.output, /^ℹ pass [1-9]/m);
    if (!curious) assert.equal(ran.attempts, 0, "nobody was tried to be reached beyond this machine");
  });
}
