/** What PostgreSQL and the way to it can say, in words with a way out. */
import { RunnerError } from "../../engine/ports.ts";
import { manual } from "../../flow/manual.ts";
import { errorText } from "../../flow/text/harmless.ts";

/** The server or the way to it is gone for now: the statement may be sent again. */
export function isAway(cause: unknown): boolean {
  const code = codeOf(cause);
  if (/^(?:08...|57P0[123]|53300)$/.test(code)) return true;
  if (/^(?:ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOENT)$/.test(code)) return true;
  return (
    code === "" &&
    cause instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|server closed/i.test(
      cause.message,
    )
  );
}

/** Two processes stood in each other's way, or a flow was cleared away in that moment: the next try finds the way free. */
export function isContended(cause: unknown): boolean {
  return ["40001", "40P01", "23503", "55P03"].includes(codeOf(cause));
}

export function postgresUnavailable(name: string, cause: unknown): RunnerError {
  if (cause instanceof RunnerError) return cause;
  const said = errorText(cause);
  const code = codeOf(cause);
  const found = WORDS.find(({ codes }) => codes.test(code));
  const words = isAway(cause)
    ? "cannot be reached. Start the server, or check the address; what was committed before is kept"
    : (found?.words ?? (code === "" ? "cannot be used" : "refused a statement"));
  return new RunnerError("JOURNAL_UNAVAILABLE", `${name} ${words}. (${said})`, { cause });
}

/** The tables are older or newer than this program, or were never made. `found` is null where there are none. */
export function tablesDiffer(name: string, found: number | null, wanted: number): RunnerError {
  const words =
    found === null
      ? "holds no tables of Lockstep. Make them with: lockstep fleet init"
      : found < wanted
        ? `has tables of an older version (${found}; this program needs ${wanted}). Bring them up to date with: lockstep fleet init`
        : `has tables of a newer version (${found}; this program knows ${wanted}). Update Lockstep to use them.`;
  return new RunnerError("JOURNAL_UNAVAILABLE", `${name} ${words}`);
}

export function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "";
}

const WORDS: readonly { readonly codes: RegExp; readonly words: string }[] = [
  { codes: /^ENOTFOUND$/, words: "cannot be reached: no server has that name. Check the address" },
  { codes: /^28/, words: "does not let this user in. Check the user, PGPASSFILE and pg_hba.conf" },
  { codes: /^3D000$/, words: "does not exist. Create the database with: createdb NAME" },
  {
    codes: /^(?:3F000|42P01|42703)$/,
    words: "does not have the tables of this version. Make them with: lockstep fleet init",
  },
  {
    codes: /^42501$/,
    words: `does not allow this user to do that. Grant the rights that ${manual("fleet")} lists`,
  },
  { codes: /^53100$/, words: "could not grow: its disk is full. Make room, and resume" },
  {
    codes: /^55P03$/,
    words: "is busy: a long statement of somebody holds its tables. Wait for it or end it, and try again",
  },
  { codes: /^25006$/, words: "is read-only: it is a replica. Use the address of the primary" },
];
