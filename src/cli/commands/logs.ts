/** `lockstep logs RUN`: what happened, line by line, or the whole conversation. */
import { RunnerError } from "../../run/index.ts";
import {
  createTranscript,
  LEVELS,
  logLines,
  watchRun,
  type Level,
  type LogLine,
  type Utterance,
} from "../../run/watch/follow-run.ts";
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";
import { withJournal } from "../journal.ts";
import { jsonLine, shown, shownInLine, type Paint, type Style } from "../text/text.ts";

export async function printLogs(call: Call): Promise<number> {
  const { screen, host } = call;
  const [ref = ""] = call.words;
  const level = levelOf(call);
  const isJson = call.on("json");
  const follow = call.on("follow");
  return await withJournal(call, async (journal, stateDir) => {
    if (journal === null) {
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    }
    const signal = follow ? host.interruption() : new AbortController().signal;
    const { flow, moments } = await watchRun(journal, ref, follow, signal);
    const transcript = call.on("transcript") ? createTranscript(flow) : null;
    for await (const { entry, before, after } of moments) {
      const texts =
        transcript === null
          ? logLines(entry, before, after, flow)
              .filter((line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level))
              .map((line) => (isJson ? jsonLine(line) : lineText(line, screen.out, call.on("verbose"))))
          : transcript(entry, before, after).map((said) =>
              isJson ? jsonLine(said) : utteranceText(said, screen.out),
            );
      for (const text of texts)
        if (isJson) screen.emit(text);
        else screen.print(text);
    }
    return 0;
  });
}

function levelOf(call: Call): Level {
  const said = call.text("level");
  if (said !== undefined && call.on("transcript"))
    throw new UsageError("--level is about the log; a transcript has no levels.");
  const level = LEVELS.find((other) => other === (said ?? (call.on("verbose") ? "debug" : "info")));
  if (level === undefined) throw new UsageError(`--level knows ${LEVELS.join(", ")}, not "${said}".`);
  return level;
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

/** A heading that tells whose words these are, and the words. */
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
