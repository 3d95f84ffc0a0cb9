/** `lockstep fleet drain [WORKER …]`: asks workers to give back what they drive, and to end. */
import { withFleet } from "../../fleet/open.ts";
import { drainWorkers, workersOf } from "../../fleet/status.ts";
import { EXIT } from "../../flow/verdict.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { shownInLine } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

const USUAL_MS = 30 * 60_000;

export async function fleetDrain(call: CallOf<"fleet drain">): Promise<number> {
  const { words, flags, screen } = call;
  if (flags.all === words.length > 0)
    throw new UsageError("fleet drain needs the names of workers (see `lockstep fleet ps`), or --all.");
  // It would be the beginning of every id.
  if (words.includes("")) throw new UsageError("fleet drain needs names of workers that are not empty.");
  const drained = await withFleet(fleetAddress(call), call.host.env, async (postgres) => {
    const known = (await workersOf(postgres)).filter(({ alive }) => alive);
    const unknown = words.find((word) => !known.some(({ id, name }) => name === word || id.startsWith(word)));
    if (unknown !== undefined)
      throw new UsageError(`There is no living worker "${unknown}".`, {
        word: unknown,
        candidates: known.map(({ name }) => name),
      });
    return await drainWorkers(postgres, flags.all ? "all" : words, flags.within ?? USUAL_MS);
  });
  if (flags.json) screen.document({ v: 1, draining: drained });
  else for (const name of drained) screen.print(`${shownInLine(name, 60)} drains.`);
  return EXIT.completed;
}
