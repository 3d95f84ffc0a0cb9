/** Where a journal on PostgreSQL is: `postgres://HOST/DATABASE?schema=NAME`, with the parts that are ours taken out. */
import { RunnerError } from "../../engine/ports.ts";

export type PostgresAddress = {
  /** What the client library connects to. */
  readonly connection: string;
  readonly schema: string;
  /** Connections are shared between transactions by a pooler that does not know named statements. */
  readonly isPooled: boolean;
  /** For people: without user, password and options. */
  readonly name: string;
};

/** The user and the password stand before the host: an option would hide them from who reads the command line. */
const OPTIONS: readonly string[] = ["schema", "pooler", "sslmode", "sslrootcert", "sslcert", "sslkey"];
const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full", "no-verify"];

export function readPostgresAddress(text: string): PostgresAddress {
  if (!URL.canParse(text)) throw notAnAddress("it is not a URL");
  const url = new URL(text);
  if (url.hash !== "" || url.pathname.slice(1).includes("/"))
    throw notAnAddress("write / ? # and @ in a user or password as %2F %3F %23 and %40");
  for (const option of url.searchParams.keys())
    if (!OPTIONS.includes(option))
      throw notAnAddress(`it has an option that is not known; use ${OPTIONS.join(", ")}`);
  const sslmode = url.searchParams.get("sslmode");
  if (sslmode !== null && !SSL_MODES.includes(sslmode))
    throw notAnAddress(`its sslmode is not one of ${SSL_MODES.join(", ")}`);
  const schema = url.searchParams.get("schema") ?? "lockstep";
  const pooler = url.searchParams.get("pooler");
  url.searchParams.delete("schema");
  url.searchParams.delete("pooler");
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(schema) || schema.startsWith("pg_"))
    throw notAnAddress(
      "its schema is not a valid name: use up to 40 small letters, digits and _, not beginning with pg_",
    );
  if (pooler !== null && pooler !== "transaction")
    throw notAnAddress('its pooler is not "transaction", the only one that has to be named');
  const database = url.pathname.slice(1);
  if (database === "") throw notAnAddress("it names no database");
  return {
    connection: url.href,
    schema,
    isPooled: pooler !== null,
    name: `postgres://${url.host}/${database}${schema === "lockstep" ? "" : `?schema=${schema}`}`,
  };
}

/** The text itself may hold a password, so it is not repeated. */
function notAnAddress(why: string): RunnerError {
  return new RunnerError(
    "JOURNAL_UNAVAILABLE",
    `The address of the journal is not valid: ${why}. Write it as postgres://HOST/DATABASE or postgres://HOST/DATABASE?schema=NAME.`,
  );
}
