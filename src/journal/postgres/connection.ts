/** Statements on a pool of connections to PostgreSQL, sent again while the server is away. */
import { closed } from "../errors.ts";
import type { PostgresAddress } from "./address.ts";
import { codeOf, isAway, isContended, postgresUnavailable } from "./postgres-errors.ts";

export type StatementValues = readonly unknown[];
export type Rows = readonly { readonly [column: string]: unknown }[];

export type Postgres = {
  readonly name: string;
  readonly schema: string;
  /**
   * The rows of one statement, committed when it resolves. A statement whose answer was lost is sent again, so each one
   * must give the same when it is repeated; what does not belongs into `together`.
   */
  readonly send: (statement: Statement, values?: StatementValues) => Promise<Rows>;
  /** Several statements in one transaction. It is sent again as a whole, but never where it was committed. */
  readonly together: <T>(work: (send: Postgres["send"]) => Promise<T>) => Promise<T>;
  /** The same for a caller that repeats it after a failure: by calling what this gives, until it resolves. */
  readonly transaction: <T>(work: (send: Postgres["send"]) => Promise<T>) => () => Promise<T>;
  /** From now on a server that is away is waited for so long. */
  readonly waitFor: (patienceMs: number) => void;
  readonly close: () => Promise<void>;
  readonly isOpen: () => boolean;
};

/** `name`: the server prepares it once for each connection; "": never, and then it may be several statements in one text. */
export type Statement = { readonly name: string; readonly text: string };

type Answer = { readonly rows: Rows };

/** What we use of the package `pg`. */
type Pool = {
  readonly query: (query: object) => Promise<Answer | readonly Answer[]>;
  readonly connect: () => Promise<Client>;
  readonly on: (event: "error", listener: (error: Error) => void) => void;
  readonly end: () => Promise<void>;
};
type Client = Pick<Pool, "query" | "on"> & {
  readonly off: Pool["on"];
  readonly release: (broken?: Error) => void;
};
export type PostgresPackage = { readonly Pool: new (options: object) => Pool };

export type PostgresOptions = {
  readonly address: PostgresAddress;
  readonly pg: PostgresPackage;
  /** How long a statement is repeated while the server cannot be reached. */
  readonly patienceMs: number;
  /** The connection of a statement that takes longer is given up. */
  readonly queryTimeoutMs?: number;
};

const CONNECTIONS = 3;

const XACT: Statement = { name: "xact", text: "SELECT pg_current_xact_id_if_assigned()::text AS xact" };
const STATUS: Statement = { name: "xact-status", text: "SELECT pg_xact_status($1::text::xid8) AS status" };

/** The server has not ended a transaction whose connection broke: the next look says what became of it. */
class UnderWay extends Error {
  readonly code = "08007";
  override readonly message = "the transaction is still under way";
}

export function openPostgres({
  address,
  pg,
  patienceMs,
  queryTimeoutMs = 30_000,
}: PostgresOptions): Postgres {
  const { name, schema, isPooled } = address;
  const pool = new pg.Pool({
    connectionString: address.connection,
    max: CONNECTIONS,
    keepAlive: true,
    allowExitOnIdle: true,
    connectionTimeoutMillis: 3000,
    query_timeout: queryTimeoutMs,
    application_name: "lockstep",
  });
  // A connection that breaks while nobody uses it: the next statement opens another one.
  pool.on("error", () => undefined);
  let isOpen = true;
  let patience = patienceMs;

  const on =
    (connection: Pick<Pool, "query">): Postgres["send"] =>
    async ({ name: statement, text }, values = []) => {
      const named = isPooled || statement === "" ? {} : { name: `lockstep-${schema}-${statement}` };
      const answer = await connection.query({ ...named, text, values });
      return "rows" in answer ? answer.rows : answer.flatMap(({ rows }) => rows);
    };

  const repeated = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    for (let tries = 1; ; tries += 1) {
      if (!isOpen) throw closed(name);
      try {
        return await work();
      } catch (cause) {
        const isOver = performance.now() - began > patience;
        if (isOver || !(isAway(cause) || isContended(cause))) throw postgresUnavailable(name, cause);
        const wait = Math.min(2000, 25 * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2);
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  };

  const connected = async <T>(work: (connection: Client) => Promise<T>): Promise<T> => {
    const connection = await pool.connect();
    let broken: Error | undefined;
    // The query that breaks rejects as well; without a listener the event would end the process.
    const heard = (error: Error) => void (broken ??= error);
    connection.on("error", heard);
    try {
      return await work(connection);
    } catch (error) {
      // Also when our own code refuses: the connection is dropped, and the server rolls back.
      broken = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      connection.off("error", heard);
      connection.release(broken);
    }
  };

  const isCommitted = async (xact: unknown): Promise<boolean> => {
    const [row] = await on(pool)(STATUS, [xact]).catch((error: unknown) => {
      // It is newer than anything that the server knows: it went down with the server.
      if (codeOf(error) === "22023") return [];
      throw error;
    });
    if (row?.status === "in progress") throw new UnderWay();
    return row?.status === "committed";
  };

  const transaction: Postgres["transaction"] = <T>(work: (send: Postgres["send"]) => Promise<T>) => {
    /** Its commit was sent, and no answer came. */
    let sent: { readonly xact: unknown; readonly result: T } | null = null;
    const perform = async (): Promise<T> => {
      if (sent !== null && (await isCommitted(sent.xact))) return sent.result;
      sent = null;
      return await connected(async (connection) => {
        await connection.query({ text: "BEGIN" });
        const result = await work(on(connection));
        const [row] = await on(connection)(XACT);
        // Without a number it has written nothing.
        if (row!.xact !== null) sent = { xact: row!.xact, result };
        await connection.query({ text: "COMMIT" });
        return result;
      });
    };
    return () => repeated(perform);
  };

  return {
    name,
    schema,
    send: (statement, values) => repeated(() => on(pool)(statement, values)),
    together: (work) => transaction(work)(),
    transaction,
    isOpen: () => isOpen,
    waitFor: (ms) => (patience = ms),
    async close() {
      if (!isOpen) return;
      isOpen = false;
      await pool.end();
    },
  };
}
