/** `lockstep fleet fetch RUN`: the files of a run as a branch of the repository around. */
import { EXIT } from "../../flow/verdict.ts";
import { fetchFiles } from "../../run/records/fetch-files.ts";
import type { CallOf } from "../commands.ts";
import { withRecord } from "../journal.ts";
import { shellWord, shownInLine } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

export async function fleetFetch(call: CallOf<"fleet fetch">): Promise<number> {
  const { flags, screen, host, cwd, typed } = call;
  const [ref = ""] = call.words;
  fleetAddress(call);
  const { as } = flags;
  const around = { env: host.env, signal: host.stopped() };
  const found = await withRecord(call, ref, (journal) =>
    fetchFiles(journal, ref, { cwd, ...(as !== undefined && { as }) }, around),
  );
  const { run, branch, commit, base, uncommitted } = found;
  if (flags.json) screen.document({ v: 1, ...found });
  else {
    const since = base === null ? shellWord(branch) : `${base.slice(0, 10)}..${shellWord(branch)}`;
    const note = uncommitted ? " Its last commit has what the run had not committed." : "";
    const look = base === null ? `git show --stat ${since}` : `git log --stat ${since}`;
    screen.print(
      typed(
        `The branch ${shownInLine(branch, 200)} has the files of run ${shownInLine(run, 80)} (${commit.slice(0, 10)}).${note} Look at it with: ${look}`,
      ),
    );
  }
  return EXIT.completed;
}
