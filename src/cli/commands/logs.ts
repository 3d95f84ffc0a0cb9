/** `lockstep logs RUN`: what happened, line by line, or the whole conversation. */
import { findRun } from "../../run/records/runs.ts";
import { momentsOf } from "../../run/watch/follow.ts";
import type { Moment } from "../../story/story.ts";
import { systemClock } from "../../run/world/clock.ts";
import { LEVELS, type Level, type LogLine } from "../../tell/log-line.ts";
import { logLines } from "../../tell/log.ts";
import { createTranscript, type Utterance } from "../../tell/transcript.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withRunOrFile } from "../journal.ts";
import { jsonLine, shown, shownInLine, type Paint, type Style } from "../text/text.ts";

export async function printLogs(call: CallOf<"logs">): Promise<number> {
  const { screen, host } = call;
  const [ref = ""] = call.words;
  const level = levelOf(call);
  const isJson = call.flags.json;
  const follow = call.flags.follow;
  return await withRunOrFile(call, ref, async (journal, run) => {
    const transcript = call.flags.transcript ? createTranscript() : null;
    const textsOf = (moment: Moment) =>
      transcript === null
        ? logLines(moment)
            .filter((line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level))
            .map((line) => (isJson ? jsonLine(line) : lineText(line, screen.out, call.flags.verbose)))
        : transcript(moment).map((said) => (isJson ? jsonLine(said) : utteranceText(said, screen.out)));
    const following = follow ? { clock: systemClock, signal: host.interruption() } : null;
    for await (const moments of momentsOf(journal, await findRun(journal, run), following))
      for (const text of moments.flatMap(textsOf))
        if (isJson) screen.emit(text);
        else screen.print(text);
    return 0;
  });
}

function levelOf({ flags: { level, transcript, verbose } }: CallOf<"logs">): Level {
  if (level !== undefined && transcript)
    throw new UsageError("--level only works with the log; a transcript has no levels.");
  return level ?? (verbose ? "debug" : "info");
}

const COLOURS: { readonly [level in Level]: Style } = {
  debug: "dim",
  info: "cyan",
  warn: "yellow",
  error: "red",
};

/** `12:00:01.250 info  [StepFlow] Interpreted intent: next  {"stepId":…}` */
function lineText({ timestamp, level, message, metadata }: LogLine, paint: Paint, isWhole: boolean): string {
  const parts = [
    paint("dim", timestamp.slice(11, 23)),
    paint(COLOURS[level], level.padEnd(5)),
    shown(message),
  ];
  if (metadata !== undefined) {
    const about = jsonLine(metadata);
    parts.push(paint("dim", isWhole ? about : shownInLine(about, 200)));
  }
  return parts.join(" ");
}

/** A heading that names the speaker, and the words. */
function utteranceText(said: Utterance, paint: Paint): string {
  const { timestamp, step, visit, turn } = said;
  const heading = `── ${said.role} · ${shownInLine(step, 80)} #${visit} · turn ${turn} · ${timestamp.slice(11, 23)}`;
  return `${paint("bold", heading)}\n${wordsOf(said).map(shown).join("\n")}\n`;
}

function wordsOf(said: Utterance): readonly string[] {
  switch (said.role) {
    case "system":
    case "user":
    case "error":
      return [said.text];
    case "assistant": {
      const spoken = said.output === undefined ? said.text : JSON.stringify(said.output, null, 2);
      const calls = said.calls.map(({ id, name, input }) => `→ ${name} ${JSON.stringify(input)}  (${id})`);
      return [...(spoken === "" && calls.length > 0 ? [] : [spoken]), ...calls];
    }
    case "tool":
      return said.results.map(({ id, name, ok, denied, content }) => {
        const came = denied === undefined ? (ok ? "done" : "failed") : "denied";
        return `← ${name} ${came}  (${id})\n${denied ?? content}`;
      });
  }
}
