/** The chain behind one decision, in words. Pure. Long texts are cut unless all is asked for. */
import { judgedIn, type CallResult, type Event, type Reply } from "../../flow/event.ts";
import type { Say } from "../../flow/command.ts";
import type { Why } from "../../tell/why.ts";
import { eventWords } from "../../tell/event-words.ts";
import { supplierText } from "../../tell/origin-words.ts";
import type { Fact } from "./facts.ts";
import { KIND_WORDS } from "../../tell/graph-words.ts";
import { besideEachOther, count, duration, shownInLine, type Paint } from "./text.ts";
import {
  becauseText,
  namingText,
  choiceText,
  commandText,
  whyMoveText,
  schemaText,
  standRows,
  UNDECIDED,
} from "../../tell/why-words.ts";
import { createPage, type Page } from "./why-page.ts";

type Moment = Why["moments"][number];
type Answered = Event & { type: "step.answered" };
type Said = NonNullable<Why["pending"]>["told"][number];
type Read = NonNullable<Moment["read"]>;
type Checked = NonNullable<Moment["checked"]>;
type Followed = NonNullable<Moment["followed"]>;

export function whyText(why: Why, paint: Paint, full: boolean): string {
  const page = createPage(paint, full);
  const { agent, run, step, visit, name, kind, iteration, from } = why;
  const head = [agent, `run ${run}`, `${step} #${visit}`, ...(name === step ? [] : [name]), KIND_WORDS[kind]];
  return [
    paint("bold", [...head, `iteration ${iteration}`].map((part) => shownInLine(part, 80)).join(" · ")),
    "",
    ...page.rows([
      ["came from", from === null ? "the beginning of the run" : shownInLine(from, 80)],
      ["decided", decisionText(why, paint)],
      ...(why.decision?.notes ?? []).map((note): Fact => ["", paint("yellow", page.line(note, 400))]),
    ]),
    ...(full ? page.section("system prompt", page.block("sent", why.system.text)) : []),
    ...why.moments.flatMap((moment) => momentLines(why, moment, page)),
    ...(why.pending === null ? [] : pendingLines(why, why.pending, page)),
    ...(full
      ? []
      : [
          "",
          paint(
            "dim",
            "--full shows everything untruncated, with system prompt and schemas; --json contains all of it.",
          ),
        ]),
  ].join("\n");
}

/** `closing ✗ tests-pass (tests-failed) → continuation.issue` */
function decisionText({ decision, state, moments }: Why, paint: Paint): string {
  if (decision === null) return paint("yellow", UNDECIDED[state]);
  const { label, to, overturned, fork } = decision;
  const results = moments.findLast(({ checked }) => checked?.overturned)?.checked?.results ?? [];
  const failed = results.filter(({ ok }) => !ok).map(({ name, pattern }) => ` ${name} (${pattern})`);
  const word = label === null ? paint("yellow", "no answer") : paint("bold", shownInLine(label, 40));
  const taken = overturned ? `${word} ${paint("red", `✗${shownInLine(failed.join(","), 120)}`)}` : word;
  const onward = to === null ? "end" : shownInLine(to, 80);
  return `${taken} → ${fork === undefined ? onward : `(${besideEachOther(fork)}), then ${onward}`}`;
}

function momentLines(why: Why, moment: Moment, page: Page): readonly string[] {
  const { event, read, checked, followed } = moment;
  return [
    ...(event.type === "step.answered" ? answeredLines(why, event, moment, page) : []),
    ...(read === undefined || !("step" in event)
      ? []
      : page.section("read", readRows(why, event.step, read, page))),
    ...(checked === undefined ? [] : checkLines(why, checked, page)),
    ...otherLines(event, page),
    ...(followed === undefined ? [] : page.section("edge", followedRows(followed, page))),
  ];
}

function answeredLines(why: Why, event: Answered, { asked }: Moment, page: Page): readonly string[] {
  const answer = page.section("answer", replyRows(why, event, page));
  if (asked === undefined) return answer;
  const again = asked.attempt === 1 ? [] : [`attempt ${asked.attempt}`];
  if (asked.by === "command") {
    const argv = asked.argv === null ? "nothing: an argument has no value" : asked.argv.join(" ");
    return [...page.section(["command", ...again].join(" · "), [["runs", page.line(argv, 400)]]), ...answer];
  }
  const { heard, told } = asked;
  const title = [
    `turn ${event.turn}`,
    ...(event.step === why.step ? [] : [`question ${shownInLine(event.step, 80)}`]),
    ...(heard === 0 ? [] : [`after ${count(heard, "message")} in the same conversation`]),
    ...again,
  ];
  return [
    ...page.section(
      title.join(" · "),
      told.flatMap((one) => saidRows(one, page)),
    ),
    ...answer,
  ];
}

function saidRows({ say, prompt, variables, words }: Said, page: Page): readonly Fact[] {
  const { paint } = page;
  const elsewhere = (prompt?.tried ?? []).filter((path) => path !== prompt?.file);
  return [
    ...sayRows(say),
    ...(prompt === null
      ? []
      : page.list("prompt", [
          prompt.file ?? paint("yellow", "no file"),
          ...elsewhere.map((path) => `not at ${shownInLine(path)}`),
        ])),
    ...page.list(
      "variables",
      variables.map(({ name, value, supplier, missing }) => {
        const named = shownInLine(name, 60);
        if (value === null)
          return `${named} ${paint("red", `has no value: ${shownInLine(missing ?? "", 400)}`)}`;
        const from = supplier === null ? "" : paint("dim", `  from ${supplierText(supplier)}`);
        return `${named} = ${page.line(value, 80)}${from}`;
      }),
    ),
    ...(words === null ? [] : words.kind === "text" ? page.block("sent", words.text) : []),
    ...(words?.kind === "unaskable" ? page.block("not asked", `${words.code}: ${words.why}`) : []),
  ];
}

function sayRows(say: Say): readonly Fact[] {
  if (say.kind === "results") return [["sent", `the results of ${count(say.results.length, "tool call")}`]];
  const because = becauseText(say);
  return because === null ? [] : [["because", because]];
}

/** What an agent with a loop of its own used, each tool once with how often. */
function allowedIn(reply: Reply): readonly string[] {
  const times = new Map<string, number>();
  for (const { name, denied } of judgedIn(reply))
    if (denied === undefined) times.set(name, (times.get(name) ?? 0) + 1);
  return [...times].map(([name, count]) => `${shownInLine(name, 60)}${count === 1 ? "" : ` ${count} times`}`);
}

function deniedIn(reply: Reply, page: Page): readonly string[] {
  return judgedIn(reply).flatMap(({ name, denied }) =>
    denied === undefined ? [] : [page.paint("red", `${shownInLine(name, 60)} ${page.line(denied, 200)}`)],
  );
}

function replyRows({ contracts }: Why, { step, reply }: Answered, page: Page): readonly Fact[] {
  switch (reply.kind) {
    case "said": {
      const { text, calls, output } = reply;
      const raw = text !== "" || output === undefined ? text : JSON.stringify(output);
      const answer = contracts.find((contract) => contract.step === step)?.answer;
      const schema = answer?.kind === "object" && calls.length === 0 ? answer.schema : null;
      return [
        ...(raw === "" ? [] : page.block("said", raw)),
        ...page.list(
          "calls",
          calls.map(({ name, input }) => `${shownInLine(name, 60)} ${page.line(input, 160)}`),
        ),
        ...page.list("allowed", allowedIn(reply)),
        ...page.list("denied", deniedIn(reply, page)),
        ...(schema === null ? [] : [["held to", schemaText(schema)] as const]),
      ];
    }
    case "oversized":
      return [["refused", page.paint("red", page.line(reply.why, 400))]];
    case "fault":
      return [
        ["failed", page.paint("yellow", `${reply.fault.kind}: ${page.line(reply.fault.message, 400)}`)],
      ];
    case "unaskable":
      return [["none", page.paint("red", `${reply.code}: ${page.line(reply.why, 400)}`)]];
  }
}

function readRows({ contracts, inspection }: Why, step: string, read: Read, page: Page): readonly Fact[] {
  const { paint } = page;
  const contract = contracts.find((other) => other.step === step);
  const answer = contract?.answer;
  const schema = answer?.kind === "object" && answer.schema.kind === "schema" ? answer.schema.schema : null;
  const field = contract?.decide.by === "field" ? contract.decide.path.join(".") : "";
  const { corrected, missing } = read;
  const handed = Object.entries(read.handoff).map(
    ([key, value]) => `${shownInLine(key, 60)} = ${page.line(value)}`,
  );
  return [
    ...(schema !== null && (page.full || inspection)
      ? page.block("schema", JSON.stringify(schema, null, 2), 60)
      : []),
    ...(corrected === null
      ? []
      : [
          [
            "corrected",
            `${corrected.field} "${page.line(corrected.said, 80)}" to "${corrected.value}"`,
          ] as const,
        ]),
    ...page.list(
      "unusable",
      read.errors.map((error) => paint("red", `✗ ${page.line(error, 400)}`)),
    ),
    ...(read.label === null ? [] : [["label", labelText(read, field, page)] as const]),
    ...(read.reason === "" ? [] : [["reason", page.line(read.reason, 400)] as const]),
    ...page.list("hands on", [
      ...handed,
      ...(missing.length === 0 ? [] : [paint("yellow", `not ${missing.join(", ")}: absent`)]),
    ]),
  ];
}

function labelText({ label, by, word }: Read, field: string, { paint, line }: Page): string {
  const words = namingText(by, field, word === null ? null : line(word, 80));
  const isOdd = by === "fallback" || by === "miss";
  return `${paint("bold", shownInLine(label ?? "", 40))}  ${paint(isOdd ? "yellow" : "dim", words)}`;
}

function resultRow({ name, ok, content, denied, grant }: CallResult, { paint, line }: Page): Fact {
  const sign = denied !== undefined ? paint("red", "denied") : ok ? paint("green", "✓") : paint("red", "✗");
  const by = grant === undefined ? "" : paint("dim", ` (${grant.decision} by ${grant.by})`);
  return [shownInLine(name, 40), `${sign}${by} ${line(denied ?? content, 160)}`];
}

function checkLines({ decision }: Why, checked: Checked, page: Page): readonly string[] {
  const { paint } = page;
  const { on, results, notRun, failures, maxFailures, overturned, onFailure } = checked;
  const to = decision?.to ?? null;
  const then = to === null ? "the run ends" : `the run goes on at ${shownInLine(to, 80)}`;
  const most = onFailure === "retry" ? `failure ${failures} of ${maxFailures}` : "a failure is not retried";
  return page.section(`checks before ${on === null ? "the end" : shownInLine(on, 40)}`, [
    ...results.flatMap(({ name, ok, pattern, attempt, summary, params, unrecoverable }) => {
      const sign = ok ? paint("green", "✓") : paint("red", `✗ ${shownInLine(pattern, 60)}`);
      const title: Fact = [shownInLine(name, 60), `${sign}  ${paint("dim", `attempt ${attempt}`)}`];
      if (ok) return [title];
      const shown = Object.entries(params).filter(([key]) => page.full || !RAW.has(key));
      return [
        title,
        ...page.block("", summary, 4),
        ...(unrecoverable ? [["", paint("red", "another attempt cannot help")] as const] : []),
        ...shown.map(([key, value]): Fact => ["", `${shownInLine(key, 40)} = ${page.line(value)}`]),
      ];
    }),
    ...notRun.map((name): Fact => [shownInLine(name, 60), paint("dim", "not run")]),
    ...(overturned ? [["overturned", `${most}; ${then}`] as const] : []),
    ...(!overturned && results.some(({ ok }) => !ok) ? [notOverturned(checked)] : []),
  ]);
}

/** A failure that does not lead back to another step. */
function notOverturned({ stage }: Checked): Fact {
  if (stage === "gate") return ["then", "as the resolutionPolicy of the stage says"];
  if (stage === "assert") return ["then", "another attempt in the same conversation, if any are left"];
  return ["skipped", "a failure is ignored here"];
}

/** Raw outputs of a check: the summary is made from them. */
const RAW: ReadonlySet<string> = new Set(["stdout", "stderr", "summary", "command"]);

/** What needs a line or two and no more. */
function otherLines(event: Event, page: Page): readonly string[] {
  switch (event.type) {
    case "step.called":
      return page.section(
        "tools",
        event.results.map((result) => resultRow(result, page)),
      );
    case "step.waited":
      return page.section("wait", [["waited", duration(event.ms)]]);
    case "step.looked":
      return page.section(
        "outside",
        event.sights.map(({ met, what }): Fact => [met ? "met" : "not met", page.line(what, 160)]),
      );
    case "step.hooked": {
      const { hook, result } = event;
      if (result.kind === "absent") return [];
      const came =
        result.kind === "gave"
          ? `gave ${page.line(result.value, 160)}`
          : `failed: ${page.line(result.message, 160)}`;
      return page.section("hook", [[hook, came.trimEnd()]]);
    }
    case "step.asked":
      return page.section("person", [["asked", page.line(event.question.text, 400)]]);
    case "step.told": {
      const by = event.by === undefined ? "" : ` (${event.by})`;
      const nothing = event.by === "expired" ? "nothing in time" : "nothing: no one was available";
      return page.section("person", [["said", `${page.line(event.answer ?? nothing, 160)}${by}`]]);
    }
    case "effect.intended":
      return [];
    case "run.resumed":
      return ["", page.paint("bold", "the run was resumed")];
    case "run.adopted":
      return ["", page.paint("bold", `from here on the flow ${event.flow.slice(0, 12)} holds`)];
    case "run.edited":
      return page.section(
        "edited",
        Object.entries(event.handoff).map(([step, data]): Fact => [step, page.line(data, 160)]),
      );
    case "run.ended":
      return endLines(event.verdict, page);
    default: {
      const words = eventWords(event);
      if (words === null) return [];
      return page.section(words.title, [[shownInLine(words.name, 40), page.line(words.text, 400)]]);
    }
  }
}

function followedRows(followed: Followed, page: Page): readonly Fact[] {
  const { label, choices, move, why: none, fork, stop, isTaken } = followed;
  const waits = fork !== null && move?.kind === "end" && move.outcome === "completed";
  const others = (fork?.steps ?? []).filter((id) => !fork?.done.includes(id));
  const rest =
    others.length === 0
      ? "all parallel stages are done"
      : `once ${others.join(", ")} ${others.length === 1 ? "is" : "are"} done`;
  const target = waits ? `${fork.join ?? "end"}, ${rest}` : move === null ? "" : whyMoveText(move);
  return [
    ...page.list(
      "because",
      choices.map((choice) => choiceText(choice, page.line)),
    ),
    ...(stop === null ? [] : page.list("stop rule", standRows(stop))),
    ...(none === null ? [] : page.block("no onward transition", none)),
    ...(isTaken ? [["taken", `${shownInLine(label, 40)} → ${target}`] as const] : []),
  ];
}

function pendingLines(
  { state }: Why,
  { command, told }: NonNullable<Why["pending"]>,
  page: Page,
): readonly string[] {
  return page.section(state === "stopped" ? "when the run is resumed" : "under way", [
    ["next", commandText(command)],
    ...told.flatMap((one) => saidRows(one, page)),
  ]);
}

function endLines({ outcome, code, reason }: NonNullable<Why["ended"]>, page: Page): readonly string[] {
  const colour = outcome === "completed" ? "green" : outcome === "failed" ? "red" : "yellow";
  return page.section("the run ended", [
    ["outcome", page.paint(colour, `${outcome}${code === null ? "" : ` ${code}`}`)],
    ...page.block("reason", reason),
  ]);
}
