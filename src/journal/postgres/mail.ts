/** Letters to runs on PostgreSQL: rows that any machine can write, and that the process which drives the run looks for. */
import { randomUUID } from "node:crypto";
import { isControlWish, type ControlWish, type Mail } from "../../flow/mail.ts";
import { runUnknown } from "../errors.ts";
import type { Postgres, Rows, Statement } from "./connection.ts";
import { createRounds } from "./rounds.ts";
import { wakeWithin } from "./wake.ts";

export type PostgresMail = Mail & {
  /** Looks no more. */
  readonly close: () => void;
};

/** One question for all runs of a process, so often. */
const LAG_MS = 400;
/** More than any letter that is accepted. */
const MOST_LETTERS = 65_537;

/** `ownerId`: under which name this process drives runs. */
export function createPostgresMail(postgres: Postgres, ownerId: string): PostgresMail {
  const { name, schema } = postgres;
  const sql = statementsOf(schema);
  const hearers = new Map<string, (wish: ControlWish) => void>();
  let timer: NodeJS.Timeout | null = null;
  let isLooking = false;

  const lookAround = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      for (const { id, body } of await postgres.send(sql.wishes, [ownerId]))
        if (isControlWish(body)) hearers.get(id as string)?.(body);
    } catch {
      // The next look finds what this one could not.
    } finally {
      isLooking = false;
    }
  };
  const wishes = createRounds<{ readonly id: string }>(
    async (asked) => {
      const rows = await postgres.send(sql.wish, [asked.map(({ id }) => id)]);
      const found = new Map(rows.map(({ id, body }) => [id, body]));
      return asked.map(({ id }) => ({ value: found.get(id) }));
    },
    { most: 1000, abreast: 1 },
  );
  const rest = () => {
    if (timer !== null) clearInterval(timer);
    timer = null;
  };
  const keyOf = async (send: Postgres["send"], run: string): Promise<unknown> => {
    const [row] = await send(sql.key, [run]);
    if (row === undefined) throw runUnknown(run);
    return row.key;
  };
  const discreetly = async (statement: Statement, values: readonly unknown[]): Promise<void> => {
    // What is left behind is removed with the run.
    await postgres.send(statement, values).catch(() => undefined);
  };

  return {
    lagMs: LAG_MS,
    where: (run, question) => `${name}, question ${question} of run ${run}`,
    async post(run, question, text, { wakes = true } = {}) {
      // A transaction whose answer was lost is sent again: by this the letter is known as ours.
      const letter = randomUUID();
      return await postgres.together(async (send) => {
        const key = await keyOf(send, run);
        await send(sql.post, [key, question, text, letter]);
        const [stored] = await send(sql.posted, [key, question]);
        if (stored?.letter !== letter) return false;
        if (wakes) await wakeWithin(send, schema, run);
        return true;
      });
    },
    async find(run, question) {
      const [row]: Rows = await postgres.send(sql.find, [run, question, MOST_LETTERS]);
      return row === undefined ? null : { text: row.body as string, at: row.at as number };
    },
    discard: async (run, question) => await discreetly(sql.discard, [run, question]),
    async leaveWish(run, wish) {
      await postgres.together(async (send) => {
        await send(sql.leave, [await keyOf(send, run), wish]);
        if (wish === "continue") await wakeWithin(send, schema, run);
      });
    },
    async wishFor(run) {
      const wish = await wishes.offer({ id: run });
      return isControlWish(wish) ? wish : null;
    },
    forgetWish: async (run, wish) => await discreetly(sql.forget, [run, wish]),
    hearWishes(run, heed) {
      hearers.set(run, heed);
      timer ??= setInterval(() => void lookAround(), LAG_MS).unref();
      return () => {
        if (hearers.get(run) === heed) hearers.delete(run);
        if (hearers.size === 0) rest();
      };
    },
    fleet: {
      async queueOf(run) {
        const [row] = await postgres.send(sql.queue, [run]);
        if (row === undefined) throw runUnknown(run);
        if (row.queue === null) return null;
        return { queue: row.queue as string, held: row.held as string | null };
      },
      wake: async (run) => await postgres.together((send) => wakeWithin(send, schema, run)),
    },
    close: rest,
  };
}

function statementsOf(schema: string) {
  const statement = (name: string, text: string): Statement => ({ name: `mail-${name}`, text });
  const ofRun = `run = (SELECT key FROM ${schema}.run WHERE id = $1)`;
  return {
    key: statement("key", `SELECT key FROM ${schema}.run WHERE id = $1`),
    post: statement(
      "post",
      `INSERT INTO ${schema}.mail (run, question, kind, body, letter) VALUES ($1, $2, 'answer', $3, $4) ON CONFLICT DO NOTHING`,
    ),
    posted: statement(
      "posted",
      `SELECT letter FROM ${schema}.mail WHERE run = $1 AND kind = 'answer' AND question = $2`,
    ),
    find: statement(
      "find",
      `SELECT left(body, $3) AS body, extract(epoch FROM at)::float8 * 1000 AS at FROM ${schema}.mail
        WHERE ${ofRun} AND kind = 'answer' AND question = $2`,
    ),
    discard: statement(
      "discard",
      `DELETE FROM ${schema}.mail WHERE ${ofRun} AND kind = 'answer' AND question = $2`,
    ),
    leave: statement(
      "leave",
      `INSERT INTO ${schema}.mail (run, question, kind, body) VALUES ($1, '', 'wish', $2)
        ON CONFLICT (run, kind, question) DO UPDATE SET body = excluded.body, at = clock_timestamp()`,
    ),
    wish: statement(
      "wish",
      `SELECT r.id, m.body FROM ${schema}.mail m JOIN ${schema}.run r ON r.key = m.run
        WHERE m.kind = 'wish' AND r.id = ANY($1)`,
    ),
    wishes: statement(
      "wishes",
      `SELECT r.id, m.body FROM ${schema}.mail m JOIN ${schema}.run r ON r.key = m.run
        WHERE m.kind = 'wish' AND r.owner = $1`,
    ),
    queue: statement(
      "queue",
      `SELECT queue, CASE WHEN held IS NOT NULL THEN coalesce(held_because, held) END AS held
        FROM ${schema}.run WHERE id = $1`,
    ),
    forget: statement("forget", `DELETE FROM ${schema}.mail WHERE ${ofRun} AND kind = 'wish' AND body = $2`),
  };
}
