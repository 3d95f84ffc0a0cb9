/** Attempts at what a command must not be able to do, made in the sandbox that a run would have on this machine. */
import { randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { childEnv } from "../effects/process.ts";
import type { Flow } from "../flow/flow.ts";
import { tryGround, type SandboxTold, type Surroundings } from "./boundary.ts";
import { readConfig } from "./config.ts";
import { settingsFolder, type Ground } from "./sandbox.ts";

export type Probe = {
  readonly limit: string;
  /** advisory: told to the model and judged by the gate, but nothing would stop a command. */
  readonly state: "enforced" | "advisory";
  readonly why: string;
};

export type Probed = {
  readonly v: 1;
  readonly agent: string;
  readonly ok: boolean;
  readonly sandbox: SandboxTold;
  readonly probes: readonly Probe[];
};

export async function probe(flow: Flow, around: Surroundings): Promise<Probed> {
  await using tried = await tryGround(flow, around);
  const { sandbox, ground } = tried;
  const attempts = attemptsOf(around);
  const ofCommands =
    ground === null || !sandbox.confined
      ? attempts.map(({ limit }) => ({ limit, ...withoutSandbox(sandbox) }))
      : await tryAll(attempts, ground, around);
  const isAsked = readConfig(around.env).defaultBackend !== "acp";
  const probes = [...ofCommands, network(sandbox), ...(isAsked ? GATE : GATE.map(unasked))];
  return { v: 1, agent: flow.agent, ok: ground !== null, sandbox, probes };
}

type Attempt = {
  readonly limit: string;
  /** Exits with 0 when it got what it must not get. */
  readonly command: string;
  /** What it would have left behind. */
  readonly trace?: string;
};

/** All of them do no harm where they succeed: what they make is removed again. */
function attemptsOf({ project, cwd, env }: Surroundings): readonly Attempt[] {
  const mark = `lockstep-probe-${randomUUID().slice(0, 8)}`;
  const home = env.HOME ?? "/nonexistent";
  const make = (limit: string, trace: string): Attempt => ({ limit, command: `: > "${trace}"`, trace });
  const reach = (limit: string, path: string): Attempt => ({
    limit,
    command: `test -n "$(ls -A "${path}" 2>/dev/null)" && { test -d "${path}" || test -s "${path}"; }`,
  });
  return [
    make("commands write only in their folders", join(home, `.${mark}`)),
    make("the system is not changed", `/etc/${mark}`),
    make("agents are not changed", join(project.agentsDir, mark)),
    make("git hooks are not planted", join(cwd, ".git", "hooks", mark)),
    { limit: "git's settings are not changed", command: `test -e .git/config && : >> .git/config` },
    reach("SSH keys are not seen", join(home, ".ssh")),
    reach("the record of runs is not seen", project.stateDir),
    reach("what is trusted is not seen", settingsFolder(env)),
    { limit: "other processes are not seen", command: `test -e /proc/${process.pid}/cwd` },
    { limit: "other processes are not signalled", command: `kill -0 ${process.pid}` },
    {
      limit: "no privileges are gained",
      command: "unshare -r true || ! grep -q 'CapEff:.*0000000000000000' /proc/self/status",
    },
    { limit: "nothing is mounted", command: "mount -t tmpfs none /mnt" },
  ];
}

async function tryAll(
  attempts: readonly Attempt[],
  ground: Ground,
  around: Surroundings,
): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  for (const attempt of attempts) probes.push(await tryOne(attempt, ground, around));
  return [...probes, await tryLoopback(ground, around)];
}

async function tryOne(
  { limit, command, trace }: Attempt,
  ground: Ground,
  around: Surroundings,
): Promise<Probe> {
  const { exitCode } = await ground.exec({
    command: `( ${command} ) >/dev/null 2>&1`,
    cwd: around.cwd,
    env: childEnv(around.env),
    timeoutMs: 20_000,
    maxOutputBytes: 1024,
    signal: new AbortController().signal,
  });
  const isLeft = trace !== undefined && existsSync(trace);
  if (isLeft) rmSync(trace, { force: true });
  return exitCode === 0 || isLeft
    ? { limit, state: "advisory", why: "the attempt got through" }
    : { limit, state: "enforced", why: "the attempt failed" };
}

/** A server of our own on this machine, which the sandbox must not reach. */
async function tryLoopback(ground: Ground, around: Surroundings): Promise<Probe> {
  const limit = "services of this machine are not reached";
  let reached = 0;
  const server = createServer((socket) => {
    reached += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const connect = `require("node:net").connect(${port}, "127.0.0.1").on("error", () => {})`;
  const command = `bash -c ': < /dev/tcp/127.0.0.1/${port}'; node -e '${connect}'; false`;
  await tryOne({ limit, command }, ground, around);
  server.close();
  return reached === 0
    ? { limit, state: "enforced", why: "no connection came in" }
    : { limit, state: "advisory", why: "a connection came in" };
}

function network(sandbox: SandboxTold): Probe {
  const limit = "hosts on the network";
  if (!sandbox.confined || sandbox.engine === null) return { limit, ...withoutSandbox(sandbox) };
  const hosts = sandbox.hosts ?? [];
  if (hosts === "all") return { limit, state: "advisory", why: "you opened the network of this machine" };
  return {
    limit,
    state: "enforced",
    why:
      hosts.length === 0
        ? "there is no network in the sandbox"
        : `a proxy lets ${hosts.length} hosts through`,
  };
}

/** These hold in our own process, for every call. */
const GATE: readonly Probe[] = [
  { limit: "tools outside of the step's list", state: "enforced", why: "every call passes the gate" },
  {
    limit: "files outside of the folder, for Read, Write and Edit",
    state: "enforced",
    why: "every path is followed to where it leads",
  },
  {
    limit: "commands that write to GitHub",
    state: "advisory",
    why: "their text is looked at, and text can be disguised",
  },
];

/** Such an agent has tools of its own, and asks leave for those that it chooses. */
function unasked({ limit }: Probe): Probe {
  return {
    limit,
    state: "advisory",
    why: "your default backend is an agent that asks only when it wants to",
  };
}

/** Where no command can start, none can break a limit. */
function withoutSandbox(sandbox: SandboxTold): Pick<Probe, "state" | "why"> {
  if (!sandbox.confined && !sandbox.starts) return { state: "enforced", why: sandbox.why };
  return { state: "advisory", why: whyNot(sandbox) };
}

function whyNot(sandbox: SandboxTold): string {
  if (!sandbox.confined) return `commands are not confined: ${sandbox.why}`;
  return sandbox.trouble ?? "the sandbox cannot be opened";
}
