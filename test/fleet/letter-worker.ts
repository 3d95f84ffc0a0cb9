/**
 * A worker in a process of its own for `wakes.proc.ts`. A stretch reads the letters of its run and ends, and the next letter
 * is posted around that moment. The parent can have it post letters to a run, all at once.
 */
import { randomUUID } from "node:crypto";
import { createPresence } from "../../src/fleet/presence.ts";
import { work } from "../../src/fleet/worker.ts";
import { createPostgresMail } from "../../src/journal/postgres/mail.ts";
import { bossAt, postgresAt } from "./fleet-server.ts";

export type LetterWorkerOptions = {
  readonly url: string;
  readonly queue: string;
  readonly slots: number;
  /** So many letters a run gets from those who drive it. */
  readonly letters: number;
};
export type LettersWanted = { readonly run: string; readonly letters: number };

const { url, queue, slots, letters } = JSON.parse(process.argv[2]!) as LetterWorkerOptions;
const postgres = postgresAt(url);
const { schema } = postgres;
const dispatch = await bossAt(postgres);
const id = randomUUID();
const mail = createPostgresMail(postgres, id);
const offers = { slots, queues: [queue], speech: 1, models: [], backends: [], sandbox: null };
const about = { id, name: id, host: "h", pid: process.pid, version: "0", leaseMs: 30_000, offers };
const presence = createPresence(postgres, about);
const draining = new AbortController();
const posting = new Set<Promise<unknown>>();
const post = (run: string, question: string) => {
  const posted = mail.post(run, question, "go on").finally(() => posting.delete(posted));
  posting.add(posted);
};
process.on("SIGTERM", () => draining.abort());
// Its parent is gone.
process.on("disconnect", () => process.exit());
process.on("message", (wanted: LettersWanted) => {
  for (let place = 0; place < wanted.letters; place += 1) post(wanted.run, `${id} ${place}`);
});

const BEGIN = {
  name: "probe-begin",
  text: `UPDATE ${schema}.probe SET doubles = doubles + driven::int, driven = true, stretches = stretches + 1,
    seen = (SELECT count(*)::int FROM ${schema}.mail m JOIN ${schema}.run r ON r.key = m.run WHERE r.id = $1)
    WHERE run = $1 RETURNING seen`,
};
const END = { name: "probe-end", text: `UPDATE ${schema}.probe SET driven = false WHERE run = $1` };

await presence.enter();
await work({
  postgres,
  dispatch,
  presence,
  wanted: { queues: [queue], speech: 1 },
  slots,
  shares: { default: 1000, of: {} },
  leaseMs: 30_000,
  stretchMs: 3_600_000,
  requireRoom: () => undefined,
  drive: async ({ job: { run } }) => {
    const [row] = await postgres.send(BEGIN, [run]);
    const seen = row!.seen as number;
    // Somewhere between this look at the letters and the end of the settling.
    if (seen < letters) setTimeout(() => post(run, `letter ${seen}`), Math.random() * 30);
    await postgres.send(END, [run]);
    return { kind: "waiting" };
  },
  draining: draining.signal,
  drainMs: 60_000,
  now: Date.now,
  observe: () => undefined,
});
await presence.leave();
await Promise.all(posting);
await dispatch.close();
await postgres.close();
process.disconnect();
