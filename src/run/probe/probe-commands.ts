/**
 * Attempts at what a command must not be able to do, made in the sandbox that a run would have here: all of them by one
 * command, beside things that it must be able to do, so that a sandbox in which nothing works proves nothing.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findGitPlace } from "../../effects/git/git-place.ts";
import { createModuleHost } from "../../effects/modules/module-host.ts";
import type { SandboxReport, Surroundings } from "../boundary.ts";
import { ownFiles } from "../world/own-files.ts";
import { waitingPlant, type Plant, type Planted } from "./probe-planted.ts";
import {
  advisory,
  enforced,
  judgedRow,
  newName,
  untried,
  type Probe,
  type ProbeScene,
  type ProbeRow,
} from "./probe-table.ts";
import { homeFolder, settingsFolder, type SandboxGround } from "../world/sandbox.ts";

type Attempt = {
  readonly limit: string;
  /** Exits with 0 when it got what it must not get. */
  readonly command: string;
  /** What it would have left behind. */
  readonly trace?: string;
  /** Known only outside: whether it got there. */
  readonly isReached?: () => boolean;
  /** Why there is nothing to try it on. */
  readonly missing?: string;
  readonly held?: string;
};

export async function commandProbes(scene: ProbeScene, planted: Planted): Promise<readonly Probe[]> {
  const { sandbox, ground, around } = scene;
  const attempts = attemptsOf(around, planted);
  const others = ["hooks, modules and tool servers are confined like commands", NETWORK];
  if (ground === null || !sandbox.confined) {
    const { state, why } = await withoutSandbox(sandbox, ground, around);
    return [...attempts.map(({ limit }) => limit), ...others].map((limit) => ({ limit, state, why }));
  }
  const [module = "", network = ""] = others;
  return [
    ...(await tryCommands(attempts, ground, around)),
    { limit: module, ...(await tryModule(ground, around)) },
    { limit: network, ...(await tryNetwork(sandbox, ground, around)) },
  ];
}

/** All of them do no harm where they succeed: what they make is removed again, and files are opened and not written. */
function attemptsOf({ project, cwd, env }: Surroundings, planted: Planted): readonly Attempt[] {
  const home = homeFolder(env);
  const settings = settingsFolder(env);
  const make = (limit: string, folder: string, missing = `there is no ${folder}`): Attempt => {
    const trace = join(folder, newName());
    return { limit, command: `: > ${quoted(trace)}`, trace, ...(!existsSync(folder) && { missing }) };
  };
  const own = ownFiles(["/"], env);
  const bins = binFolders(own.packages[0] ?? "/", env);
  const place = findGitPlace(cwd);
  const isOurs = seesProcess();
  const noGit = "there is no git repository here";
  return [
    make("commands write only in their folders", home),
    make("the system is not changed", "/etc"),
    make("agents are not changed", project.agentsDir),
    {
      ...make("Lockstep's own package is not changed", dirname(fileURLToPath(import.meta.url))),
      held: `${own.packages[0] ?? "its folder"} cannot be written`,
    },
    {
      limit: "packages that Lockstep may load are not changed",
      command: anyOf(own.packages.map((path) => `: >> ${quoted(join(path, "package.json"))}`)),
      ...(own.packages.length < 2 && { missing: "no such package was found" }),
      held: `tried on ${own.packages.length - 1} packages`,
    },
    {
      limit: "node_modules/.bin is not changed",
      command: anyOf(bins.map((path) => `: > ${quoted(join(path, MARK))} && rm ${quoted(join(path, MARK))}`)),
      ...(bins.length === 0 && { missing: "there is none on your PATH or beside Lockstep" }),
      held: `tried on ${bins.join(", ")}`,
    },
    make("git hooks are not planted", join(place?.common ?? "", "hooks"), noGit),
    {
      limit: "git's settings are not changed",
      command: `: >> ${quoted(join(place?.common ?? "", "config"))}`,
      ...(place === null && { missing: noGit }),
    },
    secrets(home),
    hiddenFolder("the record of runs is not seen or changed", project.stateDir),
    hiddenFolder("what is trusted is not seen or changed", settings),
    { limit: "other processes are not seen", command: isOurs },
    {
      limit: "other processes are not signalled",
      command: `kill -0 ${process.pid} && { ${isOurs} || ! test -e /proc/${process.pid}; }`,
    },
    {
      limit: "no privileges are gained",
      command: "unshare -r true || ! grep -q 'CapEff:.*0000000000000000' /proc/self/status",
    },
    { limit: "nothing is mounted", command: "mount -t tmpfs none /mnt" },
    ofPlant("named pipes of the home folder are not reached", planted.pipe, (path) => `printf x 1<> ${path}`),
    ofPlant("sockets of services are not reached", planted.socket, (path) => `test -S ${path}`),
    ofPlant("datagram sockets are not reached", planted.datagrams, (path) => `test -S ${path}`),
    ofPlant("services of this machine are not reached", planted.server, (port) => {
      const connect = `require("node:net").connect(${port}, "127.0.0.1").on("error", () => {})`;
      return `bash -c ': < /dev/tcp/127.0.0.1/'${port}; ${quoted(process.execPath)} -e ${quoted(connect)}; false`;
    }),
  ];
}

const MARK = newName();

/** A command that succeeds where it sees this process. Another one may have the same number; the time of its start differs. */
function seesProcess(): string {
  const stat = existsSync("/proc/self/stat") ? readFileSync("/proc/self/stat", "latin1") : "";
  const since = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  return `grep -q ' ${since} ' /proc/${process.pid}/stat`;
}

/** Where `npx` and `npm run` find programs: on the PATH, and beside Lockstep in every folder of packages above it. */
function binFolders(home: string, { PATH = "" }: NodeJS.ProcessEnv): readonly string[] {
  const above: string[] = [];
  for (let folder = home; folder !== dirname(folder); folder = dirname(folder)) above.push(folder);
  const beside = above.filter((folder) => folder === home || home.startsWith(join(folder, "node_modules/")));
  const all = [...PATH.split(delimiter), ...beside.map((folder) => join(folder, "node_modules/.bin"))];
  return [...new Set(all)].filter(
    (folder) => isAbsolute(folder) && folder.endsWith("/node_modules/.bin") && existsSync(folder),
  );
}

/** Of places that usually hold keys, sessions or what shells read: those that are here. */
function secrets(home: string): Attempt {
  const usual = SECRETS.map((name) => (name.startsWith("/") ? name : join(home, name)));
  const here = usual.filter((path) => isFilled(path));
  return {
    limit: "keys, sessions and shell files are not seen",
    command: anyOf(here.map(isSeen)),
    ...(here.length === 0 && { missing: `none of ${usual.join(", ")} is here` }),
    held: `tried on ${here.join(", ")}`,
  };
}

const SECRETS = [
  ".ssh .aws .gnupg .kube .docker .netrc .npmrc .config/gh .config/gcloud .claude .codex",
  ".bashrc .zshrc .profile .bash_history .zsh_history .git-credentials /etc/shadow",
].flatMap((names) => names.split(" "));

function hiddenFolder(limit: string, folder: string): Attempt {
  const trace = join(folder, newName());
  const missing = isFilled(folder) ? {} : { missing: `there is nothing in ${folder} yet` };
  return { limit, command: anyOf([isSeen(folder), `: > ${quoted(trace)}`]), trace, ...missing };
}

function ofPlant(limit: string, plant: Plant, command: (path: string) => string): Attempt {
  if (plant.kind === "missing") return { limit, command: "false", missing: plant.why };
  const held = `one was made (${plant.path}), and nothing arrived`;
  return { limit, command: command(quoted(plant.path)), isReached: plant.isReached, held };
}

async function tryCommands(
  attempts: readonly Attempt[],
  ground: SandboxGround,
  around: Surroundings,
): Promise<readonly Probe[]> {
  const possible = attempts.map(({ command, missing }) => (missing === undefined ? command : "false"));
  const answered = await inSandbox(possible, ground, around);
  return attempts.map(({ limit, missing, trace, isReached, held = "the attempt failed" }, index) => {
    const isLeft = trace !== undefined && existsSync(trace);
    if (isLeft) rmSync(trace, { force: true });
    if (missing !== undefined) return { limit, ...untried(missing) };
    if (typeof answered === "string") return { limit, ...untried(answered) };
    const isThrough = answered.has(index) || isLeft || isReached?.() === true;
    return { limit, ...(isThrough ? advisory("the attempt got through") : enforced(held)) };
  });
}

/** Which of them succeeded, by number. A text: why that is not known. */
async function inSandbox(
  commands: readonly string[],
  ground: SandboxGround,
  around: Surroundings,
): Promise<ReadonlySet<number> | string> {
  const lines = commands.map(
    (command, index) => `( ${command} ) </dev/null >/dev/null 2>&1 && echo ${index}`,
  );
  const works = ["( : > /tmp/works && test -d . ) && echo works", "echo end"];
  const { stdout, stderr } = await ground.exec({
    command: [...lines, ...works].join("\n"),
    ...waitingPlant(around),
    cwd: around.cwd,
  });
  const said = stdout.trim().split("\n");
  if (said.at(-1) !== "end") return `the command did not come to its end (${stderr.trim().slice(0, 200)})`;
  if (!said.includes("works")) return "the sandbox is of no use: a command in it cannot write to /tmp";
  return new Set(said.filter((line) => /^\d+$/.test(line)).map(Number));
}

/** A module of our own, started as those of an agent are, says where it is and tries to write to the home folder. */
async function tryModule(ground: SandboxGround, { cwd, env }: Surroundings): Promise<ProbeRow> {
  const file = join(cwd, `${newName()}.mjs`);
  const trace = join(homeFolder(env), `.${newName()}`);
  const source = `import { readlinkSync, writeFileSync } from "node:fs";
export default () => {
  try { writeFileSync(${JSON.stringify(trace)}, ""); } catch {}
  return readlinkSync("/proc/self/ns/mnt");
};
`;
  writeFileSync(file, source, { flag: "wx" });
  const digest = createHash("sha256").update(source).digest("hex");
  const host = createModuleHost({ file, digest, cwd, env, confine: ground.child });
  try {
    const said = await host.call(["default"], [], new AbortController().signal);
    if (said.kind !== "gave") return untried("message" in said ? said.message : "the module said nothing");
    const here = readlinkSync("/proc/self/ns/mnt");
    const through = [
      ...(said.value === here ? [`a module runs in the namespace of Lockstep (${here})`] : []),
      ...(existsSync(trace) ? ["a module writes to the home folder"] : []),
    ];
    return judgedRow(through, `a module runs in ${JSON.stringify(said.value)}, Lockstep in ${here}`);
  } finally {
    await host.close();
    rmSync(file, { force: true });
    rmSync(trace, { force: true });
  }
}

const NETWORK = "hosts on the network";

/** In a network of its own a command has the loopback and nothing else; whatever it reaches goes through our proxy. */
async function tryNetwork(
  sandbox: SandboxReport,
  ground: SandboxGround,
  around: Surroundings,
): Promise<ProbeRow> {
  const hosts = (sandbox.confined ? sandbox.hosts : null) ?? [];
  if (hosts === "all") return advisory("you opened the network of this machine");
  const other = "grep : /proc/net/dev | grep -qv '^ *lo:'";
  const answered = await inSandbox([other, "test ! -r /proc/net/dev"], ground, around);
  if (typeof answered === "string") return untried(answered);
  if (answered.has(1)) return untried("/proc/net/dev cannot be read in the sandbox");
  if (answered.has(0)) return advisory("the sandbox has more than a loopback");
  return enforced(
    hosts.length === 0
      ? "there is no network in the sandbox"
      : `there is only a proxy, which lets ${hosts.length} hosts through: ${hosts.join(", ")}`,
  );
}

/** Where no command can start, none can break a limit: one is started to see that. */
async function withoutSandbox(
  sandbox: SandboxReport,
  ground: SandboxGround | null,
  around: Surroundings,
): Promise<ProbeRow> {
  if (sandbox.confined) return advisory(sandbox.trouble ?? "the sandbox cannot be opened");
  if (sandbox.starts || ground === null) return advisory(`commands are not confined: ${sandbox.why}`);
  return await ground.exec({ command: "true", ...waitingPlant(around), cwd: around.cwd }).then(
    () => advisory(`a command was started, although ${sandbox.why}`),
    () => enforced(`${sandbox.why}, and a command that was tried is refused`),
  );
}

function isFilled(path: string): boolean {
  try {
    const { size } = statSync(path);
    return lstatSync(path).isDirectory() ? readdirSync(path).length > 0 : size > 0;
  } catch {
    return false; // it does not exist, or is not ours to see
  }
}

/** A command that succeeds when something is in there. */
function isSeen(path: string): string {
  const place = quoted(path);
  return `test -n "$(ls -A ${place} 2>/dev/null)" && { test -d ${place} || test -s ${place}; }`;
}

function anyOf(commands: readonly string[]): string {
  return commands.length === 0 ? "false" : commands.map((command) => `( ${command} )`).join(" || ");
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
