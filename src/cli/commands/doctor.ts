/** `lockstep doctor`: what a run needs, looked at one by one. Offline unless --online is given, and it leaves nothing behind. */
import { manual } from "../../flow/manual.ts";
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Flow } from "../../flow/flow.ts";
import { installCommand } from "../../flow/machine/install.ts";
import { NOT_INSTALLED } from "../../flow/machine/programs.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { EXIT } from "../../flow/verdict.ts";
import { hasErrors } from "../../flow/problem.ts";
import { findProject, listAgents, type Project } from "../../run/world/project.ts";
import type { Journal } from "../../run/index.ts";
import { everyRow, particularsOf } from "../../run/records/runs.ts";
import { programsFor } from "../../run/world/programs.ts";
import { loadNamed } from "../agent.ts";
import type { ReachQuery } from "../../run/world/service-reach.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withJournal } from "../journal.ts";
import { countProblems } from "../text/problems.ts";
import { count, duration, shownInLine, table } from "../text/text.ts";

/** `fail`: no run is possible. `warn`: some things are not. */
export type DoctorRow = {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly detail: string;
  readonly fix: string | null;
};

export async function examine(call: CallOf<"doctor">): Promise<number> {
  const project = findProject(call.cwd, call.stateDir);
  if (call.flags.journal) {
    if (call.flags.online) throw new UsageError("--journal and --online cannot be used together.");
    const { journalFindings } = await import("./doctor-journal.ts");
    return report(call, project, journalFindings(project.stateDir));
  }
  const { git, rg } = programsFor(call.host.env, [project.root, call.cwd]);
  const findings = [
    nodeVersion(),
    await sqlite(),
    program("git", git, ["--version"], "git version", "checks and tools of many agents call it"),
    program("ripgrep", rg, ["--no-config", "--version"], "ripgrep", SLOWER),
    await sandbox(call, project),
    await stateFolder(project, call),
    await journal(call),
    ...(await worktrees(project, call)),
    ...(await agents(project, call)),
    ok("backend scripted", "answers from a script: lockstep run NAME --script FILE"),
    ...(await models(call)),
    ...(await proxy(call)),
    await github(call),
  ];
  return report(call, project, findings);
}

function report(call: CallOf<"doctor">, project: Project, findings: readonly DoctorRow[]): number {
  const { screen } = call;
  const isFit = findings.every((finding) => finding.status !== "fail");
  if (call.flags.json)
    screen.document({ v: 1, ok: isFit, root: project.root, stateDir: project.stateDir, checks: findings });
  else {
    const colours = { ok: "green", warn: "yellow", fail: "red" } as const;
    const lines = folded(findings);
    const rows = table(
      lines.map(({ name, detail }) => [shownInLine(name, 60), shownInLine(call.typed(detail), 300)]),
    );
    for (const [place, { status, fix }] of lines.entries()) {
      const hint = fix === null ? "" : screen.out("cyan", `  fix: ${shownInLine(call.typed(fix), 300)}`);
      screen.print(`${screen.out(colours[status], status.padEnd(4))}  ${rows[place]}${hint}`);
    }
  }
  return isFit ? EXIT.completed : EXIT.unavailable;
}

function nodeVersion(): DoctorRow {
  const { node } = process.versions;
  return Number.parseInt(node, 10) >= 24
    ? ok("node", node)
    : failedRow("node", `${node} is too old`, "install Node 24 or newer");
}

async function sqlite(): Promise<DoctorRow> {
  try {
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(":memory:");
    const { version } = database.prepare("select sqlite_version() as version").get() as {
      readonly version: string;
    };
    database.close();
    return ok("node:sqlite", version);
  } catch (error) {
    return failedRow("node:sqlite", errorText(error), "use a Node that was built with SQLite");
  }
}

/** `begins`: the words before the version. */
function program(name: string, path: string | null, args: readonly string[], begins: string, why: string) {
  const { status, stdout } = spawnSync(path ?? NOT_INSTALLED, args, { encoding: "utf8", timeout: 5000 });
  if (status !== 0) return warn(name, "not found", `install ${name}: ${why}`);
  return ok(name, stdout.split("\n", 1)[0]!.replace(begins, "").trim());
}

/** What `worktree repair` would do. Git is started only for a journal of the user's own. */
async function worktrees({ root }: Project, call: CallOf<"doctor">): Promise<readonly DoctorRow[]> {
  const { repairRecorded, troubleWithWorktrees } = await import("../../run/records/worktrees.ts");
  const { stateStanding } = await import("../../run/trust/state-folders.ts");
  const { env } = call.host;
  const recorded = await withJournal(call, async (journal, stateDir) => {
    if (journal === null || stateStanding(stateDir, env).kind === "foreign") return [];
    const around = { env, signal: AbortSignal.timeout(GIT_MS), root, isOurs: true };
    return await repairRecorded(journal, around, true);
    // What is wrong with the journal is a line of its own.
  }).catch(() => []);
  return [...troubleWithWorktrees(root), ...recorded.map(({ path, what }) => `${path}: ${what}`)].map(
    (what) => warn("worktrees", what, "lockstep worktree repair"),
  );
}

const GIT_MS = 20_000;
const SLOWER = "Grep finds the same without it, but slower in large projects";

/** Whether commands are confined here. Where they cannot be, agents that do not ask for it run all the same. */
async function sandbox(call: CallOf<"doctor">, project: Project): Promise<DoctorRow> {
  const { networkHere, selfTest } = await import("../../run/world/sandbox.ts");
  const { readConfig } = await import("../../run/world/config.ts");
  const trouble = await selfTest(project, call.host.env);
  if (trouble !== null)
    return warn(
      "sandbox",
      trouble,
      "until then commands run with your permissions, and agents that ask for a sandbox do not run",
    );
  try {
    const { sandbox: wish, network } = readConfig(call.host.env);
    if (wish === "off")
      return warn(
        "sandbox",
        "your settings switch it off: commands run with your permissions",
        'remove "sandbox": "off" from your config.json',
      );
    return ok("sandbox", `bubblewrap confines commands; network: ${await networkHere(network)}`);
  } catch (error) {
    return warn("sandbox", errorText(error), `fix your config.json (${manual("models")})`);
  }
}

/** Writes and syncs a file where the journal is, or in the nearest folder that is there. */
async function stateFolder({ stateDir }: Project, call: CallOf<"doctor">): Promise<DoctorRow> {
  const { stateStanding } = await import("../../run/trust/state-folders.ts");
  try {
    const standing = stateStanding(stateDir, call.host.env);
    if (standing.kind === "foreign")
      return standing.isRefused
        ? failedRow(
            "state folder",
            `${stateDir} is not used: ${standing.why}`,
            "choose another with --state DIR",
          )
        : warn(
            "state folder",
            `${stateDir} is read-only: ${standing.why}`,
            "if you trust it, pass --trust-journal to the next run; otherwise move it away",
          );
  } catch (error) {
    return failedRow("state folder", errorText(error), "move it away, or choose another with --state DIR");
  }
  let folder = stateDir;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const file = join(folder, `.lockstep-doctor-${process.pid}`);
  const from = performance.now();
  try {
    const handle = openSync(file, "wx");
    try {
      writeSync(handle, "lockstep");
      fsyncSync(handle);
    } finally {
      closeSync(handle);
      rmSync(file, { force: true });
    }
    const took = duration(performance.now() - from);
    const where = folder === stateDir ? stateDir : `${stateDir}, to be made`;
    return ok("state folder", `${where}: writable, synced in ${took}`);
  } catch (error) {
    return failedRow(
      "state folder",
      `${stateDir}: ${errorText(error)}`,
      "make it writable, or choose another with --state DIR",
    );
  }
}

async function journal(call: CallOf<"doctor">): Promise<DoctorRow> {
  try {
    return await withJournal(call, async (journal) => {
      if (journal === null) return ok("journal", "none yet");
      const runs = count(await journal.count(), "run");
      const damaged = await damagedIn(journal);
      if (damaged === 0) return ok("journal", runs);
      return warn(
        "journal",
        `${runs}, of which at least ${damaged} cannot be read`,
        "lockstep doctor --journal",
      );
    });
  } catch (error) {
    const { rescueOf } = await import("./doctor-journal.ts");
    const { stateDir } = findProject(call.cwd, call.stateDir);
    const fix = rescueOf(stateDir) ?? "lockstep doctor --journal lists all problems";
    return failedRow("journal", errorText(error), fix);
  }
}

/** As `lockstep runs` finds them: all by their newest entry, and the newest runs by all entries. */
async function damagedIn(journal: Journal): Promise<number> {
  let damaged = 0;
  let newer = 0;
  for await (const row of everyRow(journal)) {
    newer += 1;
    const isRead = row.damaged === undefined && newer <= READ_WHOLE;
    if (row.damaged !== undefined || (isRead && (await particularsOf(journal, row.id)).damaged)) damaged += 1;
  }
  return damaged;
}

const READ_WHOLE = 20;

async function agents(project: Project, call: CallOf<"doctor">): Promise<readonly DoctorRow[]> {
  const names = listAgents(project);
  if (names.length === 0) return [warn("agents", `none in ${project.agentsDir}`, "lockstep init NAME")];
  const findings: DoctorRow[] = [];
  for (const name of names) {
    const { flow, problems } = await loadNamed(name, project.root);
    const about = countProblems(problems);
    findings.push(
      hasErrors(problems)
        ? warn(`agent ${name}`, about, `lockstep check ${name}`)
        : ok(`agent ${name}`, about),
    );
    if (flow !== null) findings.push(...(await unknownModels(name, flow, call)));
    const [server] = Object.keys(flow?.settings.mcpServers ?? {});
    if (server !== undefined) findings.push(await servers(name, server, call));
  }
  return findings;
}

/** Names of models in the files of an agent that mean nothing here. */
async function unknownModels(
  agent: string,
  flow: Flow,
  { host: { env } }: CallOf<"doctor">,
): Promise<readonly DoctorRow[]> {
  const { findModel, modelNames } = await import("../../run/world/models.ts");
  const { readConfig } = await import("../../run/world/config.ts");
  try {
    const config = readConfig(env);
    if (config.defaultBackend !== null && config.defaultBackend !== "ai-sdk") return [];
    return modelNames(flow).flatMap((model) => {
      try {
        findModel(model, { config, env });
        return [];
      } catch (error) {
        return [warn(`agent ${agent}`, `its model "${model}" is not known here`, errorText(error))];
      }
    });
  } catch {
    return []; // a config.json that cannot be read is reported with the models
  }
}

/** Whether servers of tools could be spoken to; none of them is started. */
async function servers(agent: string, server: string, call: CallOf<"doctor">): Promise<DoctorRow> {
  const { whyNoServers } = await import("../../run/world/mcp.ts");
  const trouble = await whyNoServers(server, call.host.env);
  const name = `servers of ${agent}`;
  return trouble === null
    ? ok(name, "@modelcontextprotocol/client is installed; servers start with a run")
    : warn(
        name,
        trouble,
        installCommand("@modelcontextprotocol/client@2", import.meta.url, call.host.env.LOCKSTEP_PACKAGES),
      );
}

/** Models that have the same fix share a line. */
function folded(findings: readonly DoctorRow[]): readonly DoctorRow[] {
  const isModel = ({ name, fix }: DoctorRow) => name.startsWith(MODEL) && fix !== null;
  return findings.flatMap((finding) => {
    if (!isModel(finding)) return [finding];
    const same = findings.filter((other) => isModel(other) && other.fix === finding.fix);
    if (same[0] !== finding) return [];
    const names = same.map(({ name }) => name.slice(MODEL.length)).join(", ");
    return [{ ...finding, name: MODEL + names, detail: same.map(({ detail }) => detail).join(", ") }];
  });
}

const MODEL = "model ";

/** Each name of a model; `--online` asks each service once whether it is there. */
async function models(call: CallOf<"doctor">): Promise<readonly DoctorRow[]> {
  const { PRICES_OF, surveyModels, UNPRICED } = await import("../../run/world/model-survey.ts");
  const { reachModel } = await import("../../run/world/service-reach.ts");
  const { env } = call.host;
  try {
    const { rows, isCostLimited, file } = surveyModels(env);
    const asked: ReachQuery = new Map();
    const findings = rows.map(async (row) => {
      const name = `${MODEL}${row.name}`;
      if (row.faults !== null) return warn(name, row.ref, `It ${row.faults}`);
      const what = row.price === null ? `${row.ref}, no known price` : row.ref;
      if (row.price === null && isCostLimited)
        return warn(
          name,
          what,
          `your limit on the cost refuses it: add "${row.provider}/${row.model}" to "prices" in ${file}`,
        );
      if (!call.flags.online) return ok(name, `${what}, not asked (--online)`);
      const reached = await reachModel(row.name, env, asked);
      const detail = `${what}, ${reached.detail}`;
      return reached.ok ? ok(name, detail) : warn(name, detail, reached.fix);
    });
    const unpriced = `of ${PRICES_OF}; none is known for ${UNPRICED.join(", ")}`;
    return [...(await Promise.all(findings)), ok("prices", unpriced)];
  } catch (error) {
    return [warn("models", errorText(error), `correct your config.json (${manual("models")})`)];
  }
}

/** Only where the environment names one. */
async function proxy({ host }: CallOf<"doctor">): Promise<readonly DoctorRow[]> {
  const { proxyState } = await import("../../run/world/proxy.ts");
  const state = proxyState(host.env);
  if (state.kind === "none") return [];
  if (state.kind === "used")
    return [ok("proxy", `${state.by.join(" and ")} used; this machine is asked directly`)];
  return [warn("proxy", `${state.by.join(" and ")} not used`, state.why)];
}

/** Only agents that work on issues need it. */
async function github(call: CallOf<"doctor">): Promise<DoctorRow> {
  const { surveyGitHub } = await import("../../run/world/github.ts");
  const survey = await surveyGitHub(call.host.env, call.cwd, call.flags.online);
  if (survey.ok) return ok("github", survey.value);
  const place = survey.why.lastIndexOf(": ");
  return warn("github", survey.why.slice(0, place), survey.why.slice(place + 2));
}

export function ok(name: string, detail: string): DoctorRow {
  return { name, status: "ok", detail, fix: null };
}

export function warn(name: string, detail: string, fix: string): DoctorRow {
  return { name, status: "warn", detail, fix };
}

export function failedRow(name: string, detail: string, fix: string): DoctorRow {
  return { name, status: "fail", detail, fix };
}
