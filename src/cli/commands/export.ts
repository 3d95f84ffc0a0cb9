/** `lockstep export RUN` and `lockstep import FILE` */
import { resolve } from "node:path";
import { exportRun, importRun, openExport, parseBundle, textOf } from "../../run/records/bundle.ts";
import { openJournal, RunnerError } from "../../run/index.ts";
import { MOST_BUNDLE_BYTES } from "../../run/world/files.ts";
import { findProject, recordPlace } from "../../run/world/project.ts";
import { notWritable, openWhole } from "../../run/world/write-whole.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";
import type { CallOf } from "../commands.ts";
import { journalAccess } from "../conduct.ts";
import { readGiven } from "../given-file.ts";
import { EXIT } from "../../flow/verdict.ts";
import { sayPartial, withRecord } from "../journal.ts";
import { schemasForTests } from "../schemas.ts";
import { count, shownInLine, size } from "../text/text.ts";
import { versionText } from "../version.ts";

/** The file is the result: without `--out` it goes to stdout. */
export async function exportToFile(call: CallOf<"export">): Promise<number> {
  const { screen } = call;
  const [ref = ""] = call.words;
  const out = call.flags.out;
  if (out === undefined && call.flags.json)
    throw new UsageError(
      "The export is already one JSON document; --json prints a summary of it and needs --out FILE.",
    );
  if (call.flags.test || call.flags.script) return await exportAsTest(call, ref);
  const { head, kept, damage, events, bytes } = await withRecord(call, ref, async (journal) => {
    const meta = { lockstep: versionText(false), node: process.version, platform: process.platform };
    const exporting = await openExport(journal, ref, { redact: call.flags.redact, meta });
    // Redacting may be refused at any entry, and nothing of it may be on stdout then.
    const isHeld = out === undefined && call.flags.redact;
    const pieces = isHeld ? [(await Array.fromAsync(textOf(exporting))).join("")] : textOf(exporting);
    const written = await writeTo(call, out, pieces);
    return { ...exporting, bytes: written };
  });
  if (call.flags.json)
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
      screen.err("yellow", `entry ${seq} keeps ${count(words, "text")} that its decision depends on`),
    );
  return damage === null ? EXIT.completed : sayPartial(call, damage);
}

async function exportAsTest(call: CallOf<"export">, ref: string): Promise<number> {
  const { flags, screen } = call;
  if (flags.test && flags.script) throw new UsageError("--test and --script exclude each other.");
  const as = flags.test ? "test" : "script";
  const { asTest, heardPath } = await import("./export-test.ts");
  const project = findProject(call.cwd, call.stateDir);
  const head = {
    lockstep: `Lockstep ${versionText(false)}`,
    schemas: (agent: string) => schemasForTests(project, agent),
  };
  const { run, kept, text, replies, heard, astray } = await withRecord(call, ref, async (journal) => {
    const { bundle, kept: words } = await exportRun(journal, ref, { redact: flags.redact });
    if (bundle.damaged !== undefined)
      throw new RunnerError("RUN_OPEN", `Run ${bundle.run.id} is damaged: a test needs the whole run.`);
    return {
      run: bundle.run.id,
      kept: words,
      ...(await asTest(bundle, as, head)),
    };
  });
  await writeTo(call, flags.out, [text]);
  const page = heard === null || flags.out === undefined ? null : heardPath(flags.out);
  if (page !== null) await writeTo(call, page, [heard!.trimEnd()]);
  if (flags.json)
    screen.document({
      v: 1,
      kind: "lockstep-run-as-test",
      ok: astray === null,
      run,
      file: flags.out,
      heard: page,
      as,
      redacted: flags.redact,
      replies,
      kept,
      astray,
      ...(astray !== null && { reason: `The ${as} does not go the way of the run. ${astray}` }),
    });
  else if (flags.out !== undefined)
    screen.tell(
      `Wrote ${flags.out}: ${count(replies, "response")}${astray === null ? ", tried and passed" : ""}.${page === null ? "" : ` What they were given to is in ${page}.`}`,
    );
  if (astray === null) return EXIT.completed;
  screen.complain(`The ${as} does not go the way of the run. ${shownInLine(astray)}`);
  return EXIT.testsFailed;
}

export async function importFromFile(call: CallOf<"import">): Promise<number> {
  const { screen } = call;
  const [file = ""] = call.words;
  const bundle = parseBundle(readGiven(call, file, "EXPORT_INVALID", MOST_BUNDLE_BYTES), file);
  const project = findProject(call.cwd, call.stateDir);
  const { root } = project;
  const access = journalAccess(call, call.host.stopped());
  const journal = await openJournal(recordPlace(project), { now: Date.now }, access);
  const as = call.flags.as;
  try {
    const options = { ...(as !== undefined && { as }), cwd: root, now: Date.now() };
    const { run, difference } = await importRun(journal, bundle, options);
    if (call.flags.json) screen.document({ v: 1, run, agent: bundle.run.agent, difference });
    else screen.print(run);
    if (difference !== null)
      screen.complain(
        call.typed(`Entry ${difference.seq} gives a different result here. See: lockstep replay ${run}`),
      );
    return 0;
  } finally {
    await journal.close();
  }
}

/** Under its name there is only ever a whole file: an earlier one stays until this one is on disk. */
async function writeTo(
  { cwd, host }: CommandCall,
  name: string | undefined,
  pieces: AsyncIterable<string> | readonly string[],
): Promise<number> {
  const path = name === undefined ? "" : resolve(cwd, name);
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      throw notWritable(`The run cannot be written to ${name}`, path, cause);
    }
  };
  const file = name === undefined ? null : attempt(() => openWhole(path));
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
