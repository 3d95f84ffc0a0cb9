/** `lockstep probe NAME [STEP]`: the protections of a run, tried on this machine. */
import { EXIT } from "../../flow/verdict.ts";
import { probe, type Probe, type ProbeGroup } from "../../run/probe/probe.ts";
import { builtIn, loadNamed } from "../agent.ts";
import { parseLine } from "../args.ts";
import { sandboxLines, stepsNamed, surroundingsOf } from "./boundary.ts";
import type { CallOf } from "../commands.ts";
import { tellFindings } from "./check.ts";
import { shownInLine, table } from "../text/text.ts";

export async function probeAgent(call: CallOf<"probe">): Promise<number> {
  const [name = "", id] = call.words;
  const { screen } = call;
  const loaded = await loadNamed(name, call.cwd);
  if (loaded.flow === null) return tellFindings(call, [loaded], name);
  stepsNamed(loaded.flow, id);
  const { groups: tried, ...probed } = await probe(loaded.flow, surroundingsOf(call));
  const groups = [...tried, { title: "this command line", probes: [tryFlags()] }];
  if (call.flags.json) screen.document({ ...probed, probes: groups.flatMap(({ probes }) => probes) });
  else {
    for (const group of groups) printGroup(call, group);
    if (groups.some(({ probes }) => probes.some(({ state }) => state === "advisory")))
      screen.tell(
        "enforced: tried here and blocked. advisory: nothing here blocks it, or it cannot be tested here.",
      );
    screen.tell(sandboxLines(probed.sandbox, screen.err).slice(0, 3).join("\n"));
  }
  return probed.ok ? EXIT.completed : EXIT.unavailable;
}

function printGroup({ screen, typed }: CallOf<"probe">, { title, probes }: ProbeGroup): void {
  const rows = table(
    probes.map(({ limit, why }, place) => [
      limit,
      why.length > 40 && probes[place - 1]?.why === why ? "the same" : shownInLine(typed(why), 300),
    ]),
  );
  screen.print(screen.out("bold", title));
  for (const [place, { state }] of probes.entries())
    screen.print(`  ${screen.out(state === "enforced" ? "green" : "yellow", state)}  ${rows[place]}`);
  screen.print("");
}

/** A line as a user writes it, to an agent that declares every flag there is. */
function tryFlags(): Probe {
  const limit = "flags for safety, limits, locations and output belong to you";
  const flags = builtIn();
  const reserved = flags.filter((flag) => flag.yields === undefined && flag.takes !== undefined);
  const declared = flags.map(({ name }) => ({ name, takes: "TEXT", help: "" }));
  const taken = [
    "sandbox",
    "network",
    "trust",
    "state",
    "cwd",
    "max-time",
    ...reserved.map(({ name }) => name),
  ].filter((name) => parseLine([`--${name}`, "x"], { flags, declared, lenient: true }).declared.has(name));
  if (taken.length === 0)
    return { limit, state: "enforced", why: `an agent cannot redefine any of the ${reserved.length}` };
  const names = [...new Set(taken)].map((name) => `--${name}`);
  return { limit, state: "advisory", why: `an agent can redefine ${names.join(", ")}` };
}
