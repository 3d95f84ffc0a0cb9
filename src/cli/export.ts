/** `lockstep export RUN` and `lockstep import FILE` */
import { writeWhole } from "../run/write-whole.ts";
import { resolve } from "node:path";
import { exportRun, importRun, parseBundle } from "../run/bundle.ts";
import { openJournal, RunnerError } from "../run/index.ts";
import { findProject } from "../run/project.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { journalAccess } from "./conduct.ts";
import { EXIT } from "../flow/verdict.ts";
import { sayPartial, withJournal } from "./journal.ts";
import { readText } from "./replay.ts";
import { count, jsonLine, size } from "./text.ts";
import { versionText } from "./version.ts";

/** The file is the result: without `--out` it goes to stdout. */
export async function exportToFile(call: Call): Promise<number> {
  const { screen } = call;
  const [ref = ""] = call.words;
  const out = call.text("out");
  if (out === undefined && call.on("json"))
    throw new UsageError(
      "What is exported is one JSON document already; --json tells of it, and needs --out FILE.",
    );
  const { bundle, kept } = await withJournal(call, async (journal, stateDir) => {
    if (journal === null)
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    const meta = { lockstep: versionText(false), node: process.version, platform: process.platform };
    return await exportRun(journal, ref, { redact: call.on("redact"), meta });
  });
  const text = jsonLine(bundle, 1);
  const { run, redacted, entries } = bundle;
  if (out === undefined) screen.emit(text);
  else writeTo(out, resolve(call.cwd, out), `${text}\n`);
  if (call.on("json"))
    screen.document({
      v: 1,
      run: run.id,
      file: out,
      redacted,
      events: entries.length,
      kept,
      ...(bundle.damaged !== undefined && { damaged: bundle.damaged }),
    });
  else if (out !== undefined)
    screen.tell(`Wrote ${out}: ${count(entries.length, "entry", "entries")}, ${size(text.length)}.`);
  for (const { seq, words } of kept)
    screen.tell(
      screen.err("yellow", `entry ${seq} keeps ${count(words, "text")}: its decision depends on it`),
    );
  return bundle.damaged === undefined ? EXIT.completed : sayPartial(call, bundle.damaged);
}

export async function importFromFile(call: Call): Promise<number> {
  const { screen } = call;
  const [file = ""] = call.words;
  const bundle = parseBundle(readText(call, file), file);
  const { root, stateDir } = findProject(call.cwd, call.stateDir);
  const access = journalAccess(call, call.host.stopped());
  const journal = await openJournal(stateDir, { now: Date.now }, access);
  const as = call.text("as");
  try {
    const options = { ...(as !== undefined && { as }), cwd: root, now: Date.now() };
    const { run, difference } = await importRun(journal, bundle, options);
    if (call.on("json")) screen.document({ v: 1, run, agent: bundle.run.agent, difference });
    else screen.print(run);
    if (difference !== null)
      screen.complain(
        call.typed(`Entry ${difference.seq} comes out another way here. See: lockstep replay ${run}`),
      );
    return 0;
  } finally {
    await journal.close();
  }
}

/** Under its name there is only ever a whole file: an earlier one stays until this one is on disk. */
function writeTo(name: string, path: string, text: string): void {
  try {
    writeWhole(path, text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError("NOT_WRITABLE", `The run cannot be written to ${name}: ${why}`, { cause });
  }
}
