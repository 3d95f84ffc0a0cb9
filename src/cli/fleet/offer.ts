/** `lockstep resume` and `lockstep continue` of a run of a fleet: a worker goes on with it, unless `--here` is given. */
import { EXIT } from "../../flow/verdict.ts";
import { offerToFleet, type OfferedToFleet } from "../../run/people/offer.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";
import { withJournal } from "../journal.ts";
import { shellWord, shownInLine } from "../text/text.ts";

/** Flags that say how this process reports, or which journal it means; a worker needs none of them. */
const NOT_OF_THE_RUN: ReadonlySet<string> = new Set([
  "json",
  "quiet",
  "verbose",
  "color",
  "cwd",
  "state",
  "trust-journal",
]);

/** null: it has to go on here. */
export async function offered(call: CommandCall, ref: string, unpause = false): Promise<number | null> {
  const found = await withJournal(call, async (journal) =>
    journal === null
      ? null
      : await offerToFleet(journal, ref, Date.now(), { unpause }, () => requireNone(call)),
  );
  if (found === null) return null;
  tellOffered(call, found);
  return EXIT.completed;
}

function tellOffered({ screen, flags, typed }: CommandCall, { run, queue }: OfferedToFleet): void {
  if (flags.json) screen.document({ v: 1, run, state: "queued", queue });
  else
    screen.print(
      typed(
        `A worker continues run ${shownInLine(run, 80)} (queue ${shownInLine(queue, 60)}). Follow it with: lockstep show ${shellWord(shownInLine(run, 80))} --follow`,
      ),
    );
}

/** What is said here does not reach a worker, and must not be lost without a word. */
function requireNone({ written, command }: CommandCall): void {
  const given = Object.entries(written).find(
    ([name, values]) => values.length > 0 && !NOT_OF_THE_RUN.has(name),
  );
  if (given === undefined) return;
  throw new UsageError(
    `A worker of the fleet continues this run, so --${given[0]} has no effect. Leave it out, or continue the run in this process with: ${command.name} RUN --here`,
  );
}
