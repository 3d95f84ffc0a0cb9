/** A process that forks and imports without end, for a test that kills it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fork, importRun, openJournal } from "../../src/run/index.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { JOURNALS } from "./golden.ts";

const [, , cwd = "", name = ""] = process.argv;
const journal = await openJournal(join(cwd, ".lockstep"), { now: Date.now });
const bundle = parseBundle(readFileSync(join(JOURNALS, "gate.json"), "utf8"), "gate.json");
for (let round = 0; ; round++) {
  const as = `r${name}-${round}`;
  await importRun(journal, bundle, { as, cwd, now: Date.now() });
  const env = { LOCKSTEP_TRUST: "all" };
  const { forkedFrom, reason } = await fork({
    run: as,
    at: "continuation.a@1",
    script: [],
    cwd,
    journal,
    env,
  });
  if (forkedFrom?.run !== as) throw new Error(reason);
  if (round === 0) process.stdout.write("begun\n");
}
