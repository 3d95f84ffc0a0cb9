/** `lockstep probe NAME [STEP]`: the limits of an agent put to the test on this machine. */
import { EXIT } from "../flow/verdict.ts";
import { probe } from "../run/probe.ts";
import { loadAgent } from "./agent.ts";
import { sandboxLines, stepsNamed, surroundingsOf } from "./boundary.ts";
import type { Call } from "./call.ts";
import { tellFindings } from "./check.ts";
import { shownInLine, table } from "./text.ts";

export async function probeAgent(call: Call): Promise<number> {
  const [name = "", id] = call.words;
  const { screen } = call;
  const loaded = await loadAgent(name, call.cwd);
  if (loaded.flow === null) return tellFindings(call, [loaded], name);
  stepsNamed(loaded.flow, id);
  const probed = await probe(loaded.flow, surroundingsOf(call));
  if (call.on("json")) screen.document(probed);
  else {
    const rows = table(probed.probes.map(({ limit, why }) => [limit, shownInLine(why, 300)]));
    for (const [place, { state }] of probed.probes.entries()) {
      screen.print(`${screen.out(state === "enforced" ? "green" : "yellow", state)}  ${rows[place]}`);
    }
    screen.tell(sandboxLines(probed.sandbox, screen.err).slice(0, 3).join("\n"));
  }
  return probed.ok ? EXIT.completed : EXIT.unavailable;
}
