/**
 * The engine for Linux: bubblewrap with a profile of our own. The whole disk is read-only but for the policy's folders,
 * every namespace is a new one, no capability is left and none can be regained, and nothing outlives the command.
 */
import { existsSync } from "node:fs";
import { NOT_INSTALLED, SHELL, type Programs } from "../../flow/machine/programs.ts";
import { mountsOf, real, type Mount } from "./mounts.ts";
import { NAMESPACE_REPORT, STARTS, type SandboxEngine, type SandboxPolicy } from "./sandbox.ts";
import type { ToolEnv, RunToolProcess } from "../tools/tool.ts";

export type BwrapOptions = {
  readonly exec: RunToolProcess;
  /** What the self-test sees of the environment. */
  readonly env: ToolEnv;
  readonly programs: Pick<Programs, "bwrap" | "socat">;
  /** The way out, for a policy that names hosts. */
  readonly bridge?: Bridge;
};

/** A proxy outside that lets listed hosts through, and the socket it is reached by. */
export type Bridge = {
  readonly socket: string;
  readonly token: string | undefined;
  readonly close: () => Promise<void>;
};

export function createBwrap({ exec, env, programs, bridge }: BwrapOptions): SandboxEngine {
  const wrap: SandboxEngine["wrap"] = (
    command,
    policy,
    cwd = policy.cwd,
    values = {},
    report,
    lasting = false,
  ) => [
    programs.bwrap ?? NOT_INSTALLED,
    ...(report === undefined ? [] : ["--info-fd", String(report)]),
    ...NAMESPACES,
    ...(lasting ? [] : ["--die-with-parent"]),
    ...(policy.hosts === "all" ? [] : ["--unshare-net"]),
    ...Object.entries(values).flatMap(([name, value]) => ["--setenv", name, value]),
    ...BASE,
    ...mountArgs(mountsOf(policy)),
    ...(bridge === undefined ? [] : ["--bind", bridge.socket, INNER_SOCKET]),
    "--chdir",
    // A link to it may lie where commands see nothing.
    real(cwd)[0] ?? cwd,
    "--",
    SHELL,
    "-c",
    bridge !== undefined
      ? launchBridged(programs.socat ?? NOT_INSTALLED)
      : policy.hosts === null
        ? LAUNCH_ALONE
        : LAUNCH,
    "sh",
    ...(typeof command === "string" ? [SHELL, "-c", command] : command),
  ];

  const attempt = async (policy: SandboxPolicy): Promise<string | null> => {
    if (process.platform !== "linux")
      return `commands can only be sandboxed on Linux, not on ${process.platform}`;
    if (programs.bwrap === null)
      return "bubblewrap is not installed; install it (Debian and Ubuntu: apt install bubblewrap)";
    const limits = { timeoutMs: 20_000, maxOutputBytes: 4096, signal: new AbortController().signal };
    for (let left = STARTS; ; left -= 1) {
      const command = wrap(SELF_TEST, policy, policy.cwd, {}, NAMESPACE_REPORT);
      const result = await exec({ command, cwd: policy.cwd, env, ...limits, reportsNamespace: true });
      if (result.exitCode === 0) return null;
      if (left === 1 || notStarted(command, result)?.isOutdated !== true) return explain(result);
    }
  };

  return {
    id: bridge === undefined ? "bwrap" : "bwrap+srt",
    wrap,
    notStarted,
    // A start can fail for a passing reason, so it gets a second chance.
    selfTest: async (policy) => ((await attempt(policy)) === null ? null : await attempt(policy)),
    env: bridge === undefined ? {} : proxyEnv(bridge),
    close: async () => await bridge?.close(),
  };
}

/** By its own words: it says one line and ends before anything else can speak. */
const notStarted: SandboxEngine["notStarted"] = (wrapped, { exitCode, stdout, stderr }) => {
  const why = /^bwrap: [^\n]+\n?$/.test(stderr) && exitCode === 1 && stdout === "" ? stderr.trim() : null;
  if (why === null) return null;
  const mounts = wrapped.slice(0, wrapped.indexOf("--"));
  return { why, isOutdated: mounts.some((path) => why.includes(` ${path}: `) && !existsSync(path)) };
};

const NAMESPACES = [
  "--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try",
  "--disable-userns --cap-drop ALL --new-session",
].flatMap((flags) => flags.split(" "));

const BASE = "--ro-bind / / --dev /dev --proc /proc --setenv TMPDIR /tmp".split(" ");

/** Of memory: this much may be written to each scratch folder. */
const SCRATCH_BYTES = 1024 * 1024 * 1024;
/** For anybody but root, whom the kernel does not count. */
const MAX_PROCESSES = 4096;

const LIMIT = `ulimit -p ${MAX_PROCESSES} 2>/dev/null || ulimit -u ${MAX_PROCESSES} 2>/dev/null`;
/** The home folder is read-only, and these tools stop where they cannot write their caches. */
const CACHES = defaults({
  npm_config_cache: "/tmp/.cache/npm",
  GOCACHE: "/tmp/.cache/go-build",
  UV_CACHE_DIR: "/tmp/.cache/uv",
});
/** Where there is no network, retrying for minutes is useless. */
const NO_RETRIES = defaults({ npm_config_fetch_retries: "0", PIP_RETRIES: "1", CARGO_NET_RETRY: "0" });
const LAUNCH = `${LIMIT}; ${CACHES}; exec "$@"`;
const LAUNCH_ALONE = `${LIMIT}; ${CACHES}; ${NO_RETRIES}; exec "$@"`;

/** For variables that the user does not pass. */
function defaults(values: { readonly [name: string]: string }): string {
  return Object.entries(values)
    .map(([name, value]) => `export ${name}="\${${name}:-${value}}"`)
    .join("; ");
}

const INNER_SOCKET = "/tmp/.lockstep-proxy.sock";
const INNER_PORT = 3128;
/** The bridge has no parent, so that a program that waits for all its children does not wait for it. */
function launchBridged(socat: string): string {
  const program = `'${socat.replaceAll("'", "'\\''")}'`;
  return [
    LIMIT,
    CACHES,
    `(${program} TCP-LISTEN:${INNER_PORT},bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:${INNER_SOCKET} >/dev/null 2>&1 &)`,
    `${program} -u OPEN:/dev/null TCP:127.0.0.1:${INNER_PORT},retry=100,interval=0.02 2>/dev/null`,
    'exec "$@"',
  ].join("; ");
}

/** It must start, and it must not be able to write where it may not. */
const SELF_TEST = "( : > /lockstep-self-test ) 2>/dev/null && exit 9; exit 0";

function mountArgs(mounts: readonly Mount[]): readonly string[] {
  const made = mounts.flatMap(({ path, as }): readonly string[] => {
    switch (as) {
      case "rw":
        return ["--bind", path, path];
      case "ro":
        return ["--ro-bind", path, path];
      case "hidden folder":
        return ["--tmpfs", path];
      case "hidden file":
        return ["--ro-bind", "/dev/null", path];
      case "scratch":
        return ["--perms", "1777", "--size", String(SCRATCH_BYTES), "--tmpfs", path];
    }
  });
  // Last, because mounts inside of a hidden folder need a place to be made at.
  const sealed = mounts.filter(({ as }) => as === "hidden folder");
  return [...made, ...sealed.flatMap(({ path }) => ["--remount-ro", path])];
}

function proxyEnv({ token }: Bridge): ToolEnv {
  const proxy = `http://${token === undefined ? "" : `srt:${token}@`}127.0.0.1:${INNER_PORT}`;
  const local = "localhost,127.0.0.1,::1";
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return {
    ...both("HTTP_PROXY", proxy),
    ...both("HTTPS_PROXY", proxy),
    ...both("NO_PROXY", local),
    NODE_USE_ENV_PROXY: "1",
  };
}

function explain({ exitCode, stderr }: Awaited<ReturnType<RunToolProcess>>): string {
  const said = stderr.trim().slice(0, 400);
  if (exitCode === 9) return "bubblewrap runs, but a command could write outside its folders";
  if (/unknown option/i.test(said)) return `bubblewrap is too old, 0.8 or newer is needed (${said})`;
  const hint = /namespace|permission|uid map/i.test(said)
    ? "; the system does not let users create namespaces, see kernel.apparmor_restrict_unprivileged_userns and user.max_user_namespaces"
    : "";
  return `bubblewrap cannot start here (${said || `exit code ${exitCode}`})${hint}`;
}
