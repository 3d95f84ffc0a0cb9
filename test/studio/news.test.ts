/** What open pages hear of a journal that others write to: rows, frames, questions, removals, and never too much. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RunnerError, type Journal, type NewRun, type RunHandle } from "../../src/engine/ports.ts";
import type { Entry } from "../../src/flow/event.ts";
import { createMemoryJournal } from "../../src/run/index.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";
import { createNews, fromWire, toWire, type NewsListener, type StudioNews } from "../../src/studio/news.ts";
import type { Studio, Wire } from "../../src/studio/route.ts";
import { createShelf } from "../../src/studio/shelf.ts";
import { createStreams, streamText } from "../../src/studio/streams.ts";
import type { StreamMessage } from "../../src/studio/wire.ts";
import { JOURNALS } from "../run/golden.ts";
import { until } from "../until.ts";

/** A recorded run that can be written again, entry by entry, under any name. */
function recorded(file: string): {
  readonly entries: readonly Entry[];
  readonly begin: (journal: Journal, id: string, count: number) => Promise<RunHandle>;
} {
  const { run, flows, entries } = parseBundle(readFileSync(join(JOURNALS, file), "utf8"), file);
  return {
    entries,
    begin: async (journal, id, count) => {
      const made: NewRun = { ...run, id, at: run.createdAt, digest: run.flow, flow: flows[run.flow]! };
      return await journal.create(made, entries.slice(0, count));
    },
  };
}

const gate = recorded("gate.json");
const people = recorded("people.json");

type Opened = {
  readonly journal: Journal;
  readonly news: StudioNews;
  readonly heard: StreamMessage[];
  readonly listen: (listener?: Partial<NewsListener>) => () => void;
  readonly studio: Studio;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** A journal on disk, opened twice: what is written through one is news to the other. */
async function open(): Promise<Opened> {
  const directory = mkdtempSync(join(tmpdir(), "lockstep-news-"));
  const options = { directory, now: Date.now, pid: process.pid };
  const journal = await openSqliteJournal({ ...options, ownerId: "writer" });
  const reader = await openSqliteJournal({ ...options, ownerId: "reader" });
  const shelf = createShelf();
  const news = createNews(() => Promise.resolve(reader), shelf);
  const heard: StreamMessage[] = [];
  const studio = {
    began: 7,
    journal: () => Promise.resolve(reader),
    shelf,
    news,
    redact: <T>(value: T) => value,
  } as Partial<Studio> as Studio;
  return {
    journal,
    news,
    heard,
    studio,
    listen: (listener = {}) =>
      news.listen({ hear: (message) => void heard.push(message), looked: () => undefined, ...listener }),
    [Symbol.asyncDispose]: async () => {
      news.close();
      await journal.close();
      await reader.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function rowsIn(heard: readonly StreamMessage[], run: string) {
  return heard.flatMap((message) =>
    message.type === "runs" ? message.runs.filter((line) => line.run === run) : [],
  );
}

test("a listener hears of every run that is written to, as it stands, and when it is removed", async () => {
  await using at = await open();
  const { journal, heard } = at;
  const leave = at.listen();
  await at.news.ready();
  const handle = await gate.begin(journal, "one", 3);
  await until(() => rowsIn(heard, "one").length > 0, "the run begins");
  const [first] = rowsIn(heard, "one");
  assert.deepEqual([first?.state, first?.events], ["running", 3]);
  assert.ok((first?.facts?.lanes.length ?? 0) > 0);
  await handle.append(gate.entries.slice(3));
  await until(() => rowsIn(heard, "one").at(-1)?.events === gate.entries.length, "it goes on");
  const last = rowsIn(heard, "one").at(-1)!;
  assert.equal(last.state, "completed");
  const state = last.facts!;
  assert.deepEqual(state.lanes, []);
  assert.ok(state.visits > 0 && state.turns > 0);
  await handle.release();
  await journal.remove("one");
  await until(() => heard.some(({ type }) => type === "gone" || type === "reset"), "it is removed");
  leave();
});

test("a journal that cannot be read is said to be so once, and everything is asked for again afterwards", async () => {
  await using at = await open();
  let fault: Error | null = null;
  const reader = (await at.studio.journal())!;
  const news = createNews(async () => {
    if (fault !== null) throw fault;
    return reader;
  }, createShelf());
  const heard: StreamMessage[] = [];
  const leave = news.listen({ hear: (message) => void heard.push(message), looked: () => undefined });
  await news.ready();
  assert.deepEqual([news.problem(), heard], [null, []]);
  fault = new RunnerError("JOURNAL_UNAVAILABLE", "It is away.");
  await until(() => heard.length > 0, "it is said");
  await news.ready();
  assert.deepEqual([news.problem(), heard], ["It is away.", [{ type: "journal", problem: "It is away." }]]);
  fault = null;
  await until(() => heard.some(({ type }) => type === "questions"), "it can be read again");
  assert.deepEqual(heard.slice(1), [
    { type: "journal", problem: null },
    { type: "reset" },
    { type: "questions", open: 0, runs: [] },
  ]);
  leave();
  news.close();
});

test("what is written while the first look is under way is told of, although nothing follows it", async () => {
  await using at = await open();
  const reader = (await at.studio.journal())!;
  const handle = await gate.begin(at.journal, "early", 3);
  let isWritten = false;
  const writing: Journal = {
    ...reader,
    async since(...asked) {
      const found = await reader.since(...asked);
      if (!isWritten) {
        isWritten = true;
        await handle.append(gate.entries.slice(3, 4));
      }
      return found;
    },
  };
  const news = createNews(() => Promise.resolve(writing), createShelf());
  const heard: StreamMessage[] = [];
  const leave = news.listen({ hear: (message) => void heard.push(message), looked: () => undefined });
  try {
    await news.ready();
    await until(() => rowsIn(heard, "early").at(-1)?.events === 4, "the fourth entry is told of");
  } finally {
    leave();
    news.close();
    await handle.release();
  }
});

test("a run that nobody drives any more is told of although nothing was written", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "left", 3);
  at.listen();
  await at.news.ready();
  await handle.append(gate.entries.slice(3, 4));
  await until(() => rowsIn(at.heard, "left").at(-1)?.state === "running", "it runs");
  await handle.release();
  await until(() => rowsIn(at.heard, "left").at(-1)?.state === "interrupted", "nobody drives it");
});

test("open questions are counted over all runs, once they are there and until they are answered", async () => {
  await using at = await open();
  const asked = people.entries.findIndex(({ event }) => event.type === "step.asked");
  const told = people.entries.findIndex(({ event }) => event.type === "step.told");
  assert.ok(asked > 0 && told > asked);
  const handle = await people.begin(at.journal, "asks", asked);
  at.listen();
  await at.news.ready();
  assert.deepEqual([...(await at.news.asking(at.journal))], []);
  await handle.append(people.entries.slice(asked, told));
  const said = (open: (count: number) => boolean) => () =>
    at.heard.findLast((message) => message.type === "questions")?.open !== undefined &&
    open((at.heard.findLast((message) => message.type === "questions") as { open: number }).open);
  await until(
    said((count) => count > 0),
    "a question is open",
  );
  assert.deepEqual([...(await at.news.asking(at.journal)).keys()], ["asks"]);
  await handle.append(people.entries.slice(told));
  await until(
    said((count) => count === 0),
    "it is answered",
  );
});

test("a question that a request has counted before is told of all the same", async () => {
  await using at = await open();
  const asked = people.entries.findIndex(({ event }) => event.type === "step.asked");
  const handle = await people.begin(at.journal, "asks", asked);
  at.listen();
  await at.news.ready();
  await at.news.asking(at.journal);
  await handle.append(people.entries.slice(asked, asked + 1));
  await at.news.lines(at.journal, await at.journal.rows(["asks"]));
  await until(
    () => at.heard.some((message) => message.type === "questions" && message.open > 0),
    "those who listen hear of it",
  );
  await handle.release();
});

/** A run that is about to ask, and how it goes on. */
async function askingRun(journal: Journal, id: string) {
  const asked = people.entries.findIndex(({ event }) => event.type === "step.asked");
  const told = people.entries.findIndex(({ event }) => event.type === "step.told");
  const handle = await people.begin(journal, id, asked);
  return {
    ask: async () => await handle.append(people.entries.slice(asked, told)),
    answer: async () => await handle.append(people.entries.slice(told)),
  };
}

/** What a page was told last of the runs that ask. */
const askingIn = (messages: readonly StreamMessage[]) =>
  messages.flatMap((message) => (message.type === "questions" ? [message.runs.join(" ")] : [])).at(-1);

/** News that wait with their next look at the journal until they are let go. */
async function heldNews(at: Opened) {
  const reader = (await at.studio.journal())!;
  const shelf = createShelf();
  let held = Promise.resolve();
  const news = createNews(async () => {
    await held;
    return reader;
  }, shelf);
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { hold, news, reader, studio: { ...at.studio, shelf, news } };
}

test("one question in place of another is told of, although there are as many as before", async () => {
  await using at = await open();
  const { hold, news, studio } = await heldNews(at);
  const [one, two] = [await askingRun(at.journal, "one"), await askingRun(at.journal, "two")];
  const { client, leave } = await connect({ studio });
  await until(() => askingIn(client.messages) === "", "nothing is asked yet");
  await one.ask();
  await until(() => askingIn(client.messages) === "one", "the first one is told of");
  const letGo = hold();
  await one.answer();
  await two.ask();
  letGo();
  await until(() => askingIn(client.messages) === "two", "the second one is told of");
  leave();
  news.close();
});

test("a page that is told more than the others hears when that does not hold any more", async () => {
  await using at = await open();
  const { hold, news, studio, reader } = await heldNews(at);
  const streams = createStreams();
  const [one, two] = [await askingRun(at.journal, "one"), await askingRun(at.journal, "two")];
  const first = await connect({ studio }, {}, streams);
  await until(() => askingIn(first.client.messages) === "", "nothing is asked yet");
  await one.ask();
  await until(() => askingIn(first.client.messages) === "one", "a question is told of");
  await one.answer();
  await until(() => askingIn(first.client.messages) === "", "it is answered");
  const letGo = hold();
  await two.ask();
  // A request finds the question before any look does, and so does a page that opens now.
  await news.lines(reader, await reader.rows(["two"]));
  const second = await connect({ studio }, {}, streams);
  await until(() => askingIn(second.client.messages) === "two", "the page is told of it");
  await two.answer();
  letGo();
  await until(() => askingIn(second.client.messages) === "", "the page hears that it is answered");
  first.leave();
  second.leave();
  news.close();
});

test("nobody listens: the journal is not asked anything", async () => {
  let looks = 0;
  const journal = createMemoryJournal();
  const counted = () => {
    looks += 1;
    return Promise.resolve(journal);
  };
  const news = createNews(counted, createShelf());
  const leave = news.listen({ hear: () => undefined, looked: () => undefined });
  await until(() => looks >= 3, "it looks while somebody listens");
  leave();
  // A look that is under way may still end.
  await news.ready();
  const after = looks;
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok(looks <= after + 1, `${looks} looks`);
  news.close();
});

test("while nothing happens the journal is left alone, until it is written to", async () => {
  await using at = await open();
  const reader = (await at.studio.journal())!;
  let wake: (() => void) | null = null;
  const news = createNews(() => Promise.resolve(reader), createShelf(), {
    // Only being woken leads to another look within the time of this test.
    calmMs: 3_600_000,
    watch: (changed) => {
      wake = changed;
      return () => {
        wake = null;
      };
    },
  });
  const heard: StreamMessage[] = [];
  const leave = news.listen({ hear: (message) => void heard.push(message), looked: () => undefined });
  await until(() => wake !== null, "it waits to be woken");
  await gate.begin(at.journal, "one", 3);
  assert.deepEqual(rowsIn(heard, "one"), []);
  wake!();
  await until(() => rowsIn(heard, "one").length > 0, "it looks");
  await until(() => wake !== null, "it waits again once nothing has happened for a while");
  leave();
  assert.equal(wake, null);
  news.close();
});

// Streams.

type Client = Wire & { readonly messages: StreamMessage[]; owed: number; isClosed: boolean };

function createClient(): Client {
  const client: Client = {
    messages: [],
    owed: 0,
    isClosed: false,
    send(text) {
      const [, data] = /^data: (.*)$/m.exec(text) ?? [];
      if (data !== undefined) client.messages.push(JSON.parse(data) as StreamMessage);
    },
    held: () => client.owed,
    close: () => {
      client.isClosed = true;
    },
  };
  return client;
}

async function connect(
  at: Pick<Opened, "studio">,
  query: { readonly [name: string]: string } = {},
  streams = createStreams(),
) {
  const client = createClient();
  const signal = new AbortController().signal;
  const answer = await streams.open({ params: {}, query, body: {}, signal }, at.studio);
  assert.equal(answer.kind, "stream");
  const leave = answer.kind === "stream" ? answer.open(client) : () => undefined;
  return { client, leave, streams };
}

const typesOf = ({ messages }: Client) => messages.map(({ type }) => type);

test("a stream begins with hello, and a page that comes back is told what it missed", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "one", 3);
  const first = await connect(at);
  await until(() => typesOf(first.client).includes("questions"), "it is up to date");
  assert.deepEqual(typesOf(first.client), ["hello", "questions"]);
  const hello = first.client.messages[0] as { cursor: string; began: number };
  assert.equal(hello.began, 7);
  first.leave();
  await handle.append(gate.entries.slice(3, 6));
  const second = await connect(at, { after: hello.cursor });
  await until(() => typesOf(second.client).includes("questions"), "it is up to date again");
  assert.deepEqual(
    rowsIn(second.client.messages, "one")
      .map(({ events }) => events)
      .slice(0, 1),
    [6],
  );
  second.leave();
  const lost = await connect(at, { after: toWire("999999 1 nobody") });
  await until(() => typesOf(lost.client).includes("questions"), "it is up to date");
  assert.ok(typesOf(lost.client).includes("reset"));
  lost.leave();
});

test("the frames of the run that is looked at come once each, from the one that the page asks for", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "one", 4);
  const { client, leave } = await connect(at, { run: "one", seq: "2" });
  const seqs = () =>
    client.messages.flatMap((message) =>
      message.type === "frames" ? message.frames.map(([seq]) => seq) : [],
    );
  await until(() => seqs().length >= 2, "what was there before");
  for (const entry of gate.entries.slice(4)) await handle.append([entry]);
  await until(() => seqs().at(-1) === gate.entries.length, "what came later");
  assert.deepEqual(
    seqs(),
    gate.entries.slice(2).map(({ seq }) => seq),
  );
  leave();
});

const framesOf = ({ messages }: Client) =>
  messages.flatMap((message) => (message.type === "frames" ? message.frames.map(([seq]) => seq) : []));

test("an entry that is written while frames are read is sent, although nothing follows it", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "one", 3);
  let seen = 0;
  at.listen({ looked: (changed) => void (seen += changed.has("one") ? 1 : 0) });
  await at.news.ready();
  let isWritten = false;
  const { shelf } = at.studio;
  const slow: typeof shelf = {
    ...shelf,
    async look(...asked) {
      const looked = await shelf.look(...asked);
      if (asked[0] === "reel" && !isWritten) {
        isWritten = true;
        await handle.append(gate.entries.slice(3, 4));
        await until(() => seen > 0, "the entry is seen meanwhile");
      }
      return looked;
    },
  };
  const { client, leave } = await connect({ studio: { ...at.studio, shelf: slow } }, { run: "one" });
  await until(() => framesOf(client).at(-1) === 4, "the fourth entry is sent");
  leave();
  await handle.release();
});

test("however many pages listen, a message is made once and a run is read once for them", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "one", 3);
  const made: StreamMessage[] = [];
  let reads = 0;
  const { shelf } = at.studio;
  const studio: Studio = {
    ...at.studio,
    redact: (value) => {
      made.push(value as StreamMessage);
      return value;
    },
    shelf: {
      ...shelf,
      look: (...asked) => {
        if (asked[0] === "reel") reads += 1;
        return shelf.look(...asked);
      },
    },
  };
  const streams = createStreams();
  const pages: Awaited<ReturnType<typeof connect>>[] = [];
  for (let page = 0; page < 5; page++) pages.push(await connect({ studio }, { run: "one" }, streams));
  const heard = (seq: number) => () =>
    pages.every(({ client }) => framesOf(client).at(-1) === seq && rowsIn(client.messages, "one").length > 0);
  await handle.append(gate.entries.slice(3, 4));
  await until(heard(4), "all pages are up to date");
  made.length = 0;
  reads = 0;
  await handle.append(gate.entries.slice(4, 5));
  await until(heard(5), "all pages hear of it");
  const frames = made.filter(({ type }) => type === "frames");
  assert.deepEqual([frames.length, reads], [1, 1]);
  await until(() => pages.every(({ client }) => rowsIn(client.messages, "one").at(-1)?.events === 5), "rows");
  assert.equal(made.filter(({ type }) => type === "runs").length, 1);
  for (const { leave } of pages) leave();
  await handle.release();
});

test("a page that takes nothing is sent nothing more, and told to ask for everything when it does", async () => {
  await using at = await open();
  const handle = await gate.begin(at.journal, "one", 3);
  const { client, leave } = await connect(at, { run: "one" });
  await until(() => typesOf(client).includes("frames"), "it is up to date");
  client.owed = 2 * 1024 * 1024;
  const before = client.messages.length;
  await handle.append(gate.entries.slice(3, 5));
  // Another page hears of it: so would this one have.
  const other = await connect(at);
  await until(
    () => rowsIn(other.client.messages, "one").length > 0 || other.client.messages.length > 1,
    "heard",
  );
  await handle.append(gate.entries.slice(5, 6));
  await until(() => rowsIn(other.client.messages, "one").at(-1)?.events === 6, "the other page hears");
  assert.equal(client.messages.length, before);
  client.owed = 0;
  await handle.append(gate.entries.slice(6, 7));
  await until(() => typesOf(client).slice(before).includes("reset"), "it is told");
  assert.equal(typesOf(client)[before], "reset");
  other.leave();
  leave();
});

test("no name of a run can pose as part of the stream", () => {
  const cursor = '1 2 evil\ndata: {"type":"reset"}\n\n';
  const text = streamText({ type: "gone", runs: ["a\n\ndata: x", "\u2028"] }, toWire(cursor));
  assert.equal(text.split("\n").length, 4);
  assert.match(text, /^id: [\w-]+\ndata: \{.*\}\n\n$/);
  assert.equal(fromWire(toWire(cursor)), cursor);
});
