/**
 * Loaded into a worker before its program: it kills its own process with SIGKILL at a chosen operation, which is a statement
 * that writes, a commit, or a request by HTTP. FAULT_NTH: its number from 1; FAULT_WHEN: "before" or "after" it.
 */
import { createRequire } from "node:module";
import { join } from "node:path";

type Query = (...args: unknown[]) => unknown;
type Answered = (error: unknown, result: unknown) => void;

const { FAULT_NTH, FAULT_WHEN, LOCKSTEP_PACKAGES = "" } = process.env;
const WRITES = /^\s*(?:WITH|INSERT|UPDATE|DELETE|COMMIT)\b/i;
let operations = 0;

const die = () => process.kill(process.pid, "SIGKILL");

/** True where this operation is the one to die after. */
function count(): boolean {
  operations += 1;
  if (operations !== Number(FAULT_NTH)) return false;
  if (FAULT_WHEN === "before") die();
  return true;
}

const pg = createRequire(join(LOCKSTEP_PACKAGES, "package.json"))("pg") as {
  readonly Client: { readonly prototype: { query: Query } };
};
const { prototype } = pg.Client;
const { query } = prototype;
prototype.query = function (this: unknown, ...args) {
  const [asked] = args;
  const text = typeof asked === "string" ? asked : ((asked as { text?: string } | undefined)?.text ?? "");
  if (!WRITES.test(text) || !count()) return query.apply(this, args);
  const place = args.findIndex((one) => typeof one === "function");
  if (place === -1)
    return (query.apply(this, args) as Promise<unknown>).then((result) => {
      die();
      return result;
    });
  const answered = args[place] as Answered;
  const deadly: Answered = (error, result) => {
    if (error === null || error === undefined) die();
    answered(error, result);
  };
  return query.apply(this, args.with(place, deadly));
};

const { fetch } = globalThis;
globalThis.fetch = async (...args) => {
  const isLast = count();
  const response = await fetch(...args);
  if (isLast) die();
  return response;
};
