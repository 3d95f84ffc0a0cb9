/** What the files of this project, and a journal that came with it, could make Lockstep do here. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closingOf, mayLabel } from "../../effects/actions/closing.ts";
import { RunnerError } from "../../engine/ports.ts";
import {
  advisory,
  enforced,
  judgedRow,
  newName,
  scratchFolder,
  type ProbeScene,
  type ProbeRow,
  type Trial,
} from "./probe-table.ts";
import { stateStanding } from "../trust/state-folders.ts";
import { requireTrust, trustState } from "../trust/trust.ts";

export const PROJECT_TRIALS: readonly Trial[] = [
  { limit: "nothing of this project is done before you trust it", attempt: tryTrust },
  { limit: "the journal of this project is yours", attempt: standing },
  { limit: "a journal that you did not make is not obeyed", attempt: tryForeign },
  { limit: "links in a state folder are not followed", attempt: tryLinks },
  { limit: "labels that an answer may use", attempt: tryLabels },
];

/** As a user who has trusted nothing, and with what this user has trusted. */
async function tryTrust({ flow, around, sandbox, ground }: ProbeScene): Promise<ProbeRow> {
  const { env, project } = around;
  const { LOCKSTEP_TRUST: everything, ...plain } = env;
  const confined = sandbox.confined && ground !== null;
  const options = { root: project.root, confined };
  const { state, commands, at } = await trustState(flow, { ...options, env });
  if (state === "nothing") return enforced("its files make Lockstep do nothing that needs trust");
  using home = scratchFolder();
  const isAsked = await requireTrust(flow, {
    ...options,
    env: { ...plain, HOME: home.path, XDG_CONFIG_HOME: home.path },
  }).then(
    () => false,
    (error) => error instanceof RunnerError && error.code === "NOT_TRUSTED",
  );
  if (!isAsked) return advisory("a run would begin without asking");
  if (everything === "all")
    return advisory("LOCKSTEP_TRUST=all is set: everything is trusted without asking");
  const things = `${commands.length} ${commands.length === 1 ? "thing" : "things"}`;
  if (state === "trusted") return enforced(`you trusted ${things} of it${at === null ? "" : ` on ${at}`}`);
  return enforced(`a run would ask about ${things} first: lockstep trust show ${flow.agent}`);
}

function standing({ around: { project, env } }: ProbeScene): ProbeRow {
  const found = stateStanding(project.stateDir, env);
  switch (found.kind) {
    case "absent":
      return enforced("there is none yet; the first run makes one");
    case "ours":
      return enforced(
        found.isBound ? `you made ${project.stateDir}` : `you made ${project.stateDir}; it holds no runs`,
      );
    case "foreign":
      return advisory(`${project.stateDir} can only be looked at until you say yes: ${found.why}`);
  }
}

/** One that was made elsewhere, and one that is a copy of this project's. */
function tryForeign({ around: { project, env } }: ProbeScene): ProbeRow {
  using scratch = scratchFolder();
  const ids = ["0".repeat(32), idIn(project.stateDir)].filter((id) => id !== null);
  const through = ids.flatMap((id, index) => {
    const folder = join(scratch.path, String(index));
    mkdirSync(folder);
    writeFileSync(join(folder, "id"), `${id}\n`);
    writeFileSync(join(folder, "runs.db"), "");
    const { kind } = stateStanding(folder, env);
    return kind === "foreign" ? [] : [index === 0 ? "a journal made elsewhere" : "a copy of this journal"];
  });
  return judgedRow(
    through,
    ids.length === 1 ? "a made-up one is foreign" : "a made-up one and a copy of yours are foreign",
  );
}

function idIn(stateDir: string): string | null {
  try {
    return readFileSync(join(stateDir, "id"), "utf8").trim();
  } catch {
    return null; // there is none
  }
}

function tryLinks({ around: { env } }: ProbeScene): ProbeRow {
  using scratch = scratchFolder();
  const folder = join(scratch.path, ".lockstep");
  mkdirSync(folder);
  symlinkSync(scratch.path, join(folder, "artifacts"));
  try {
    stateStanding(folder, env);
    return advisory("a link in the place of artifacts was taken");
  } catch (error) {
    return enforced(error instanceof RunnerError ? `refused with ${error.code}` : "refused");
  }
}

/** An answer that asks for a label that the agent file does not name. */
function tryLabels({ flow: { settings } }: ProbeScene): ProbeRow {
  const { github } = settings;
  if (!github.enabled) return enforced("none: GitHub is disabled");
  const label = newName();
  const answer = { closure_action: "label-and-close", issue: { labels: { add: [label], remove: [label] } } };
  const { labels } = closingOf(github, answer);
  const isTaken = [...labels.add, ...labels.remove].includes(label) || mayLabel(label, github);
  const { completion, answerLabels = [] } = github;
  const open = [
    ...new Set([...Object.values(github.labels), ...completion.add, ...completion.remove, ...answerLabels]),
  ];
  return judgedRow(isTaken ? ["any label"] : [], open.length === 0 ? "none" : open.join(", "));
}
