/** `lockstep studio`: serves the page until it is interrupted. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platform } from "node:process";
import { pathToFileURL } from "node:url";
import { findProgram } from "../../run/world/programs.ts";
import { isLoopback, openStudio, type OpenStudio } from "../../studio/index.ts";
import { loadNamed, parametersOf } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { versionText } from "../version.ts";

/** Ends with 0 when it is interrupted: that is how it is ended. */
export async function serveStudio(call: CallOf<"studio">): Promise<number> {
  const { flags, screen, host, cwd, stateDir } = call;
  requireName(call);
  const studio = await openStudio({
    cwd,
    stateDir,
    env: host.env,
    version: versionText(false),
    command: host.program,
    isCwdGiven: flags.cwd !== undefined,
    knowledge: {
      program: [process.execPath, process.argv[1] ?? ""],
      load: async (name, files) => await loadNamed(name, cwd, files),
      parametersOf,
    },
    port: flags.port,
    host: flags.host,
    names: flags.name === undefined ? [] : [flags.name],
    readOnly: flags["read-only"],
  });
  const left: string[] = [];
  try {
    if (flags.json) screen.document({ v: 1, url: studio.url, port: studio.port, readOnly: studio.readOnly });
    else screen.print(studio.url);
    if (studio.readOnly !== null) screen.tell(`The studio is read-only. ${studio.readOnly.why}`);
    if (flags.host !== undefined && !isLoopback(flags.host))
      screen.complain(
        "The connection is not encrypted: anybody on the network who sees the address can read your runs. " +
          `Safer: lockstep studio, and on the other machine: ssh -L ${studio.port}:127.0.0.1:${studio.port} HOST`,
      );
    if (flags.open) left.push(...openPage(call, studio));
    screen.tell("Serving until Ctrl-C.");
    await interrupted(host.interruption());
    return 0;
  } finally {
    for (const folder of left) rmSync(folder, { recursive: true, force: true });
    await studio.close();
  }
}

function requireName({ flags: { host, name } }: CallOf<"studio">): void {
  if (name !== undefined && !/^[a-z0-9.-]{1,253}(?::\d{1,5})?$/i.test(name))
    throw new UsageError(`--name takes a host name with or without a port, not "${name}".`);
  if (host === undefined || isLoopback(host) || name !== undefined) return;
  throw new UsageError(
    `--host ${host} can be reached from other machines, so --name must say by which host name: --name HOST[:PORT].`,
  );
}

async function interrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}

/** The address is not on a command line, which every user of the machine can see: a file that only this user can read leads there. */
function openPage({ screen, host, cwd }: CallOf<"studio">, { url }: OpenStudio): readonly string[] {
  const opener = findProgram(platform === "darwin" ? "open" : "xdg-open", host.env, [cwd]);
  if (opener === null) {
    screen.complain("No program was found that opens a browser. Open the address above.");
    return [];
  }
  const folder = mkdtempSync(join(tmpdir(), "lockstep-open-"));
  const file = join(folder, "studio.html");
  const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${url}">\n`;
  writeFileSync(file, page, { mode: 0o600, flag: "wx" });
  const child = spawn(opener, [pathToFileURL(file).href], { stdio: "ignore", detached: true, env: host.env });
  child.on("error", () => screen.complain("The browser could not be opened. Open the address above."));
  child.unref();
  return [folder];
}
