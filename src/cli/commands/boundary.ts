/** `lockstep explain NAME [STEP] --boundary`: what a step may really touch on this machine. */
import { resolve } from "node:path";
import type { Confinement } from "../../flow/event.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { defined } from "../../flow/json.ts";
import {
  boundaryOf,
  tryGround,
  type Boundary,
  type SandboxReport,
  type ServerReport,
  type StepBoundary,
  type Surroundings,
} from "../../run/boundary.ts";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { networkWish } from "../conduct.ts";
import { headed, shownInLine, type Paint } from "../text/text.ts";

export async function explainBoundary(
  call: CallOf<"explain">,
  flow: Flow,
  id: string | undefined,
): Promise<number> {
  const boundary = await boundaryOf(flow, stepsNamed(flow, id), surroundingsOf(call));
  if (call.flags.json) call.screen.document(boundary);
  else call.screen.print(boundaryText(boundary, call.screen.out));
  return 0;
}

/** How the commands of a run would be held here, as its result document would say it. */
export async function heldHere(call: CallOf<"explain">, flow: Flow): Promise<Confinement> {
  await using tried = await tryGround(flow, surroundingsOf(call));
  const { confined, engine, network, why } = tried.sandbox;
  // What must be there and cannot be opened confines nothing: there is no run.
  const isOpen = tried.ground !== null;
  return isOpen
    ? { confined, engine, network, why }
    : { confined: false, engine, network, why: whyNone(tried) };
}

function whyNone({ sandbox }: { readonly sandbox: SandboxReport }): string {
  return (sandbox.confined ? sandbox.trouble : null) ?? sandbox.why;
}

export function heldText({ confined, engine, network, why }: Confinement): string {
  if (!confined) return `not confined: ${shownInLine(why, 600)}`;
  return `confined by ${engine ?? "nothing"}, ${shownInLine(why)}; network: ${networkText(network)} (more: --boundary)`;
}

export function stepsNamed(flow: Flow, id: string | undefined): readonly Step[] {
  if (id === undefined) return Object.values(flow.steps);
  const step = Object.hasOwn(flow.steps, id) ? flow.steps[id] : undefined;
  if (step !== undefined) return [step];
  const candidates = Object.keys(flow.steps);
  throw new UsageError(`${flow.agent} has no step "${id}".`, { word: id, candidates });
}

export function surroundingsOf(call: CallOf<"probe">): Surroundings {
  const cwd = resolve(call.cwd);
  const { sandbox, network } = call.flags;
  return {
    project: findProject(cwd, call.stateDir),
    cwd,
    env: call.host.env,
    ...defined({ wish: sandbox, network: network === undefined ? undefined : networkWish(network) }),
  };
}

export function boundaryText({ agent, steps, servers, sandbox, env }: Boundary, paint: Paint): string {
  return [
    paint("bold", `${shownInLine(agent)} · what it may access`),
    "",
    ...headed(paint, [["STEP", "MODE", "TOOLS", "COMMANDS"], ...steps.map(rowOf)]),
    "",
    ...fact(paint, "servers", ...servers.map(serverLine)),
    ...sandboxLines(sandbox, paint),
    ...fact(paint, "environment", env.join(", ") || "nothing"),
  ].join("\n");
}

/** What holds on this machine; the same words as in the result document of a run. */
export function sandboxLines(sandbox: SandboxReport, paint: Paint): readonly string[] {
  const warnings = fact(
    paint,
    "",
    ...sandbox.warnings.map((text) => paint("yellow", shownInLine(text, 600))),
  );
  if (!sandbox.confined) {
    const { starts, why } = sandbox;
    const line = starts
      ? `${paint("yellow", "none")}: ${shownInLine(why, 600)}. Commands run with your permissions.`
      : `none is needed: ${shownInLine(why)}`;
    return fact(paint, "sandbox", line);
  }
  const { engine, trouble, why, writable, readOnly, hidden } = sandbox;
  const opened = engine === null ? paint("red", "cannot be opened") : `${engine}: ${shownInLine(why)}`;
  return [
    ...fact(paint, "sandbox", opened),
    ...(trouble === null ? [] : fact(paint, "", shownInLine(trouble, 600))),
    ...warnings,
    ...fact(paint, "network", networkText(sandbox.network)),
    ...fact(paint, "writes", ...writable.map((path) => shownInLine(path))),
    ...fact(paint, "only reads", ...readOnly.map((path) => shownInLine(path)), "everything else"),
    ...fact(paint, "never sees", ...hidden.map((path) => shownInLine(path)), "other processes"),
  ];
}

function networkText(network: Confinement["network"]): string {
  if (network === "none") return "none, --network opens it";
  if (network === "all") return "everything that this machine can reach";
  return network.map((host) => shownInLine(host)).join(", ");
}

function serverLine({ name, what, variables, steps }: ServerReport): string {
  const users = steps.map((step) => shownInLine(step, 60)).join(", ") || "no step";
  const given = variables.length === 0 ? "" : `, is given ${variables.join(", ")}`;
  return `mcp__${shownInLine(name, 60)}__*: ${shownInLine(what)}${given}; for ${users}`;
}

function rowOf({ step, mode, tools, asks, commands }: StepBoundary): readonly string[] {
  const forms =
    commands === null ? "any" : commands.map((form) => shownInLine(form, 40)).join(", ") || "none";
  const all = [...tools, ...(asks.length === 0 ? [] : [`asks for ${asks.join(", ")}`])];
  return [shownInLine(step, 60), mode, all.join(", ") || "none", forms];
}

function fact(paint: Paint, name: string, ...lines: readonly string[]): readonly string[] {
  return lines.map((line, place) => `${paint("dim", (place === 0 ? name : "").padEnd(12))} ${line}`);
}
