/** `lockstep export RUN` and `lockstep import FILE` */
import { resolve } from "node:path";
import { importRun, openExport, parseBundle, textOf } from "../../run/records/bundle.ts";
import { openJournal, RunnerError } from "../../run/index.ts";
import { findProject } from "../../run/world/project.ts";
import { openWhole } from "../../run/world/write-whole.ts";
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";
import { journalAccess } from "../conduct.ts";
import { EXIT } from "../../flow/verdict.ts";
import { sayPartial, withJournal } from "../journal.ts";
import { readText } from "./replay.ts";
import { count, size } from "../text/text.ts";
import { versionText } from "../version.ts";

/** The file is the result: without `--out` it goes to stdout. */
export async function exportToFile(call: Call): Promise<number> {
  const { screen } = call;
  const [ref = ""] = call.words;
  const out = call.text("out");
  if (out === undefined && call.on("json"))
    throw new UsageError(
      "What is exported is one JSON document already; --json tells of it, and needs --out FILE.",
    );
  const { head, kept, damage, events, bytes } = await withJournal(call, async (journal, stateDir) => {
    if (journal === null)
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    const meta = { lockstep: versionText(false), node: process.version, platform: process.platform };
    const exporting = await openExport(journal, ref, { redact: call.on("redact"), meta });
    // Redacting may be refused at any entry, and nothing of it may be on stdout then.
    const isHeld = out === undefined && call.on("redact");
    const pieces = isHeld ? [(await Array.fromAsync(textOf(exporting))).join("")] : textOf(exporting);
    const written = await writeTo(call, out, pieces);
    return { ...exporting, bytes: written };
  });
  if (call.on("json"))
    screen.document({
      v: 1,
      run: head.run.id,
      file: out,
      redacted: head.redacted,
      events,
      kept,
      ...(damage !== null && { damaged: damage }),
    });
  else if (out !== undefined)
    screen.tell(`Wrote ${out}: ${count(events, "entry", "entries")}, ${size(bytes)}.`);
  for (const { seq, words } of kept)
    screen.tell(
      screen.err("yellow", `entry ${seq} keeps ${count(words, "text")}: its decision depends on it`),
    );
  return damage === null ? EXIT.completed : sayPartial(call, damage);
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
async function writeTo(
  { cwd, host }: Call,
  name: string | undefined,
  pieces: AsyncIterable<string> | readonly string[],
): Promise<number> {
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new RunnerError("NOT_WRITABLE", `The run cannot be written to ${name}: ${why}`, { cause });
    }
  };
  const file = name === undefined ? null : attempt(() => openWhole(resolve(cwd, name)));
  let length = 0;
  const write = (text: string) => {
    length += text.length;
    if (file === null) host.stdout.write(text);
    else attempt(() => file.write(text));
  };
  try {
    for await (const piece of pieces) write(piece);
    write("\n");
    if (file !== null) attempt(file.done);
    return length - 1;
  } catch (error) {
    file?.drop();
    throw error;
  }
}
