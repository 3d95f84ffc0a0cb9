/** Small disks of their own for tests: to be filled, or to be written to by nobody. */
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";

/** Runs a command after `mount`, in a mount namespace of its own: nobody else sees the mounts, and they end with it. */
export function mounted(mount: string): readonly string[] {
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  return ["unshare", ...asRoot, "--mount", "sh", "-c", `${mount} && exec "$@"`, "sh"];
}

export function canMount(): [present: boolean, missing: string] {
  const [command = "", ...args] = mounted(`mount -t tmpfs none "${tmpdir()}"`);
  const { status, stderr, error } = spawnSync(command, [...args, "true"], { encoding: "utf8" });
  return [status === 0, `cannot mount a disk here to fill or to write-protect: ${error?.message ?? stderr}`];
}
