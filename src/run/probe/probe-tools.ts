/** Calls that a model must not get through, made with the tools of a run in the working directory. */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createGround } from "../../boundaries/gate/paths.ts";
import { createToolbox, offeredIn } from "../../boundaries/tools/toolbox.ts";
import { childEnv, runProcess } from "../../effects/process/process.ts";
import { callShown } from "../../flow/text/call-shown.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import type { PermissionMode } from "../../flow/settings.ts";
import { openEntries } from "../../flow/open-commands.ts";
import type { Surroundings } from "../boundary.ts";
import { BACKENDS } from "../world/backend-table.ts";
import { readConfig } from "../world/config.ts";
import { guardedIn, ownFiles } from "../world/own-files.ts";
import { loadedModules } from "../world/own-modules.ts";
import {
  advisory,
  enforced,
  judgedRow,
  newName,
  scratchFolder,
  untried,
  type ProbeScene,
  type ProbeRow,
  type Trial,
} from "./probe-table.ts";
import { programsFor } from "../world/programs.ts";
import { homeFolder, settingsFolder } from "../world/sandbox.ts";

/** A call that must be denied, and what it would have made. */
type Attempt = { readonly name: string; readonly input: JsonObject; readonly trace?: string };

export const TOOL_TRIALS: readonly Trial[] = [
  { limit: "tools outside of the step's list", attempt: asked(tryLists) },
  { limit: "tools that change something, in plan mode", attempt: asked(tryPlan) },
  {
    limit: "files outside of the folder, for Read, Write and Edit",
    attempt: asked(async (scene) => {
      using outside = scratchFolder();
      using link = linkTo(outside.path, scene.around.cwd);
      writeFileSync(join(outside.path, "there"), "x");
      return await denied(scene, "every path is followed to where it leads", [
        write(join(outside.path, newName())),
        write(join(link.name, newName())),
        write(join(homeFolder(scene.around.env), `.${newName()}`)),
        read(join(outside.path, "there")),
        read(join(link.name, "there")),
        edit(join(link.name, "there")),
        { name: "Glob", input: { pattern: `${outside.path}/*` } },
        { name: "Grep", input: { pattern: "x", path: outside.path } },
      ]);
    }),
  },
  { limit: "a folder that is swapped for a link after the judgement", attempt: trySwap },
  {
    limit: "agents and git's own files, for Write and Edit",
    attempt: asked(async (scene) => {
      const name = newName();
      const folders = [scene.around.project.agentsDir, ".agent", ".git/hooks"];
      return await denied(scene, "they are refused by name and by place", [
        ...folders.map((folder) => write(join(folder, name))),
        write(`.agent/${name}/agent.json`, `.agent/${name}`),
        edit(".git/config"),
        edit(".GIT/config"),
      ]);
    }),
  },
  {
    limit: "what Lockstep loads, for Write and Edit",
    attempt: asked(async (scene) => {
      const { cwd, env, project } = scene.around;
      const own = ownFiles([cwd], env, loadedModules(scene.flow, project.root));
      const missing = own.missing.slice(0, 20).filter(({ path }) => !existsSync(path));
      const code = join(dirname(fileURLToPath(import.meta.url)), newName());
      const held =
        own.there.length === 0 ? "" : `, ${own.there.length} places of it in the working directory`;
      return await denied(scene, `Lockstep runs from ${dirname(code)}${held}`, [
        write(code),
        // Whatever is there stays what it is: a call that got through would make a file below it.
        ...own.there.map(({ path }) => write(join(path, newName()))),
        ...missing.map(({ path }) => write(join(path, newName()), path)),
      ]);
    }),
  },
  {
    limit: "the records of runs and your settings, for all tools",
    attempt: asked(async (scene) => {
      const { env, project } = scene.around;
      const name = newName();
      const settings = join(settingsFolder(env), "config.json");
      return await denied(scene, "Read, Glob, Grep and Write are refused", [
        ...[join(project.stateDir, "runs.db"), ".lockstep/runs.db", settings].map((path) => read(path)),
        { name: "Glob", input: { pattern: ".lockstep/**" } },
        { name: "Grep", input: { pattern: ".", path: ".lockstep" } },
        write(`.lockstep/answers/${name}/question.json`, `.lockstep/answers/${name}`),
      ]);
    }),
  },
  { limit: "words that built-ins of bash evaluate, in a list of commands", attempt: asked(tryBuiltIns) },
  { limit: "the lists of commands of this agent", attempt: lists },
  {
    limit: "a call is shown whole before a person allows it",
    attempt: () => {
      const { text, isCut } = callShown("Bash", {
        name: "Bash",
        input: { description: "x".repeat(500), command: `true${" ".repeat(5000)}; hidden-part` },
      });
      const isHidden = !text.includes("hidden-part") && !isCut;
      return judgedRow(isHidden ? ["the end of a long command"] : [], "what follows 5,000 spaces is shown");
    },
  },
  {
    limit: "commands that write to GitHub",
    attempt: ({ around, flow }) => {
      if (refusalOf(around, flow, ["Bash"], "gh issue close 1") === null)
        return advisory("`gh issue close` got through");
      const isHeld = refusalOf(around, flow, ["Bash"], DISGUISED) !== null;
      return isHeld
        ? enforced("tried, also in disguise")
        : advisory("`gh issue close` is denied, and in disguise it is not");
    },
  },
];

/** `gh issue close 1`; it is judged and never run. */
const DISGUISED = "echo Z2ggaXNzdWUgY2xvc2UgMQ== | base64 -d | sh";

/** An agent that starts commands itself has tools of its own, and asks permission for those that it chooses. */
function asked(attempt: Trial["attempt"]): Trial["attempt"] {
  return async (scene) =>
    own(BACKENDS, readConfig(scene.around.env).defaultBackend ?? "")?.unconfinable
      ? advisory("your default backend is an agent that asks only when it wants to")
      : await attempt(scene);
}

/** For each step of the agent: every tool that it was not given. */
function tryLists({ flow, around }: ProbeScene): ProbeRow {
  const steps = Object.values(flow.steps).filter(({ by }) => by.kind === "model");
  const toolbox = toolboxIn(around, flow);
  const all = offeredIn(flow, stepWith(flow, ["*"])).map(({ name }) => name);
  const calls = steps.flatMap((step) => {
    const given = new Set(offeredIn(flow, step, "asking").map(({ name }) => name));
    return all.filter((name) => !given.has(name)).map((name) => ({ step, name }));
  });
  const nowhere = stepWith(flow, []);
  const more = all.map((name) => ({ step: nowhere, name }));
  const through = [...calls, ...more].filter(
    ({ step, name }) => toolbox.judge(step, { name, input: { command: "true" } }, [name]) === null,
  );
  const named = through.map(({ step, name }) => `${name} in step ${step.id}`);
  return judgedRow(
    named,
    `${calls.length + more.length} calls of tools that a step was not given are denied`,
  );
}

async function tryPlan(scene: ProbeScene): Promise<ProbeRow> {
  const name = newName();
  const trace = join(scene.around.cwd, name);
  const calls = [write(name, trace), { name: "Bash", input: { command: `: > ${name}` }, trace }];
  return await denied(scene, "Write and Bash are denied", calls, "plan");
}

/** The judgement is made, the folder becomes a link, and the path is used as tools use it. */
function trySwap({ around: { cwd } }: ProbeScene): ProbeRow {
  using outside = scratchFolder();
  const name = newName();
  const folder = join(cwd, name);
  mkdirSync(folder);
  try {
    const ground = createGround(cwd, []);
    const place = ground.writing(`${name}/file`);
    if (place.kind === "refused") return untried(place.why);
    renameSync(folder, `${folder}-moved`);
    symlinkSync(outside.path, folder);
    try {
      using pins = ground.pin();
      writeFileSync(pins.at(place.parts), "x");
    } catch {
      // It is refused, as it should be.
    }
    return judgedRow(
      existsSync(join(outside.path, "file")) ? ["a file was written outside"] : [],
      HELD[how()],
    );
  } finally {
    for (const path of [folder, `${folder}-moved`]) rmSync(path, { recursive: true, force: true });
  }
}

const HELD = {
  descriptors: "files are reached through the descriptors of their folders",
  names: "the folder is looked at a second time; a faster swap could still win",
};

function how(): keyof typeof HELD {
  return process.platform === "linux" && existsSync("/proc/self/fd") ? "descriptors" : "names";
}

function tryBuiltIns({ around, flow }: ProbeScene): ProbeRow {
  const list = ["Bash(test:*)", "Bash(printf:*)", "Bash(read:*)", "Bash([:*)"];
  const attempts = ["test -v 'a[$(id)]'", "printf -v 'a[$(id)]' x", "read 'a[$(id)]'", "[ -v 'a[`id`]' ]"];
  if (refusalOf(around, flow, list, "test -f x") !== null) return untried("the list lets nothing through");
  const through = attempts.filter((command) => refusalOf(around, flow, list, command) === null);
  return judgedRow(through, `${attempts[0]} and the like are denied`);
}

/** What the lists of this agent are worth. */
function lists({ flow, sandbox }: ProbeScene): ProbeRow {
  const steps = Object.values(flow.steps).filter(
    (step) => step.by.kind === "model" && offeredIn(flow, step, "asking").some(({ name }) => name === "Bash"),
  );
  if (steps.length === 0) return enforced("no step may run commands");
  const limit = sandbox.confined ? "the sandbox is the limit" : "nothing else limits it";
  const open = steps.flatMap(({ id, tools }) => {
    const entries = openEntries(tools.allow);
    if (entries === "any") return [`step ${id} may run any command`];
    return entries.map(({ tool, how: opens }) => `step ${id}: ${tool} (${opens})`);
  });
  if (open.length > 0) return advisory(`${open.join("; ")}; ${limit}`);
  return enforced("no entry is as good as any command; what the programs themselves run is not looked at");
}

/** The calls are made for real, by a step that may use everything; what gets through is removed again. */
async function denied(
  { flow, around }: ProbeScene,
  held: string,
  attempts: readonly Attempt[],
  mode: PermissionMode = "bypassPermissions",
): Promise<ProbeRow> {
  const toolbox = toolboxIn(around, flow);
  const step = stepWith(flow, ["*"], mode);
  const control = await isWorking(toolbox, flow, around);
  if (control !== null) return untried(control);
  const through: string[] = [];
  for (const [index, { name, input, trace }] of attempts.entries()) {
    const call = { id: `probe-${index}`, name, input };
    const [result] = await toolbox.call(step, [call], new AbortController().signal);
    if (result?.denied !== undefined) continue;
    through.push(`${name} ${JSON.stringify(input)}`);
    if (trace !== undefined) rmSync(resolve(around.cwd, trace), { recursive: true, force: true });
  }
  return judgedRow(through, held);
}

/** Where nothing can be written, it proves nothing that something cannot. */
async function isWorking(
  toolbox: ReturnType<typeof createToolbox>,
  flow: Flow,
  { cwd }: Surroundings,
): Promise<string | null> {
  const { input, trace } = write(newName());
  const call = { id: "probe", name: "Write", input };
  const [result] = await toolbox.call(stepWith(flow, ["*"]), [call], new AbortController().signal);
  rmSync(resolve(cwd, trace!), { force: true });
  return result?.ok === true ? null : `nothing can be written in ${cwd} (${result?.content ?? ""})`;
}

function write(path: string, trace = path): Attempt {
  return { name: "Write", input: { file_path: path, content: "" }, trace };
}

function read(path: string): Attempt {
  return { name: "Read", input: { file_path: path } };
}

function edit(path: string): Attempt {
  return { name: "Edit", input: { file_path: path, old_string: newName(), new_string: "" } };
}

function linkTo(target: string, cwd: string): Disposable & { readonly name: string } {
  const name = newName();
  symlinkSync(target, join(cwd, name));
  return { name, [Symbol.dispose]: () => rmSync(join(cwd, name), { force: true }) };
}

function refusalOf(
  around: Surroundings,
  flow: Flow,
  allow: readonly string[],
  command: string,
): string | null {
  const step = stepWith(flow, allow);
  return toolboxIn(around, flow).judge(step, { name: "Bash", input: { command } }, ["Bash"]);
}

function stepWith(flow: Flow, allow: readonly string[], mode: PermissionMode = "bypassPermissions"): Step {
  const [first] = Object.values(flow.steps);
  return { ...first!, kind: "work", by: { kind: "model" }, tools: { allow, mode } };
}

function toolboxIn({ cwd, env, project }: Surroundings, flow: Flow): ReturnType<typeof createToolbox> {
  const { root, stateDir } = project;
  return createToolbox({
    cwd,
    env: () => childEnv(env),
    exec: runProcess,
    programs: programsFor(env, [root, cwd]),
    autoResponse: "",
    protect: [],
    guarded: () => guardedIn({ cwd, root, stateDir }, env, loadedModules(flow, root)),
  });
}
