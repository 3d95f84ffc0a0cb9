/** `lockstep explain NAME [STEP]`: what holds, and where it was said. */
import { budgetLine } from "../../tell/budget.ts";
import { outlineOf, type Outline } from "../../tell/outline.ts";
import type { AgentExplained } from "../../tell/explain.ts";
import { explainAgent, explainStep } from "../../run/explain.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { tellFindings } from "./check.ts";
import { KIND_WORDS, targetText } from "../../tell/graph-words.ts";
import { stepText } from "../text/explain-step.ts";
import { originText, plainValue } from "../../tell/origin-words.ts";
import { dimmed, facts, factSection, promptFacts } from "../text/facts.ts";
import { countProblems } from "../text/problems.ts";
import { shownInLine, type Paint } from "../text/text.ts";

export async function explain(call: CallOf<"explain">): Promise<number> {
  const [name = "", id] = call.words;
  const { screen } = call;
  const loaded = await loadNamed(name, call.cwd);
  const { configFile, readConfig } = await import("../../run/world/config.ts");
  const ofUser = { limits: readConfig(call.host.env).limits, file: configFile(call.host.env) };
  const agent = explainAgent(loaded, ofUser);
  if (agent === null || loaded.flow === null) return tellFindings(call, [loaded], name);
  if (call.flags.boundary)
    return await (await import("./boundary.ts")).explainBoundary(call, loaded.flow, id);
  if (id === undefined) {
    const { heldHere, heldText } = await import("./boundary.ts");
    const sandbox = await heldHere(call, loaded.flow);
    if (call.flags.json) screen.document({ ...agent, sandbox });
    else {
      const { moneyLine } = await import("../../run/world/money.ts");
      const here = { money: moneyLine(loaded.flow, call.host.env), commands: heldText(sandbox) };
      screen.print(agentText(agent, outlineOf(loaded.flow), screen.out, here));
    }
    return 0;
  }
  const step = explainStep(loaded, id);
  if (step === null) {
    const candidates = Object.keys(loaded.flow.steps);
    throw new UsageError(`${name} has no step "${id}".`, { word: id, candidates });
  }
  if (call.flags.json) screen.document(step);
  else screen.print(stepText(step, screen.out));
  return 0;
}

/** What holds on this machine besides. */
type Here = { readonly money: string | null; readonly commands: string | null };

export function agentText(
  agent: AgentExplained,
  { edges }: Outline,
  paint: Paint,
  { money, commands }: Here = { money: null, commands: null },
): string {
  const leaving = Map.groupBy(edges, ({ from }) => from);
  const { parameters, settings, steps, system, entry } = agent;
  const head = [agent.agent, ...(agent.title === agent.agent ? [] : [agent.title]), `${agent.dialect} form`];
  return [
    paint("bold", head.map((part) => shownInLine(part, 80)).join(" · ")),
    ...(agent.description === "" ? [] : [shownInLine(agent.description, 400)]),
    "",
    ...facts(paint, [
      ["begins at", `${shownInLine(entry.value)}${dimmed(paint, entry.origin)}`],
      ["ends", endText(agent.ends)],
      ["steps in", agent.registry],
      ...(agent.dialect === "stage"
        ? []
        : promptFacts(
            "system",
            system,
            `none at ${system.tried.join(", ")}: the agent's name and description are used instead`,
          )),
      agent.hooks === null
        ? null
        : ["hooks", `${shownInLine(agent.hooks)}: this code may change where a stage leads`],
      ["budget", budgetLine(agent.budget)],
      money === null ? null : ["money", money],
      commands === null ? null : ["commands", commands],
      ["digest", agent.digest.slice(0, 12)],
      ["findings", countProblems(agent.problems)],
    ]),
    ...factSection(
      paint,
      "parameters",
      ["FLAG", "TYPE", "VALUE", "ABOUT", "FROM"],
      parameters.map((one) => [
        one.flag,
        one.type,
        one.default === undefined
          ? one.required
            ? "required"
            : "optional"
          : `default ${plainValue(one.default)}`,
        shownInLine(one.description, 60),
        originText(one.origin),
      ]),
    ),
    ...factSection(
      paint,
      commands === null
        ? "settings"
        : 'settings as declared (the line "commands" above shows what applies on this machine)',
      ["KEY", "VALUE", "FROM"],
      settings.map(({ key, value, origin }) => [
        key,
        value === null ? "-" : plainValue(value),
        originText(origin),
      ]),
    ),
    ...factSection(
      paint,
      "steps",
      ["STEP", "KIND", "LEADS TO", "CHECKS", "FINDINGS"],
      steps.map((step) => {
        const targets = (leaving.get(step.id) ?? []).filter((edge) => !edge.isTacit);
        const leads = [...new Set(targets.map(({ to }) => (to.kind === "step" ? to.step : targetText(to))))];
        const aside = step.aside === null ? "" : ` about ${step.aside}`;
        return [
          `${step.isEntry ? "▶ " : ""}${shownInLine(step.id, 60)}`,
          `${KIND_WORDS[step.kind]}${aside}${step.isReached ? "" : ", never reached"}`,
          leads.map((to) => (to === step.id ? "itself" : shownInLine(to, 60))).join(", ") || "-",
          step.checks.map((check) => shownInLine(check, 40)).join(", ") || "-",
          step.findings.length === 0 ? "-" : countProblems(step.findings),
        ];
      }),
    ),
  ].join("\n");
}

function endText({ criteria, checks }: AgentExplained["ends"]): string {
  const before = checks.length === 0 ? "" : ` Before that must pass: ${checks.join(", ")}.`;
  return shownInLine(criteria + before, 400);
}
