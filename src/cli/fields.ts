/** `--input NAME=VALUE` and `--input @FILE.json`: the fields of `ctx` that a run of stages starts with. */
import { resolve } from "node:path";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { errorText } from "../flow/text/harmless.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { readWritten } from "../run/world/files.ts";
import { UsageError } from "./args.ts";
import type { CommandCall } from "./call.ts";
import type { StartFlags } from "./commands.ts";

/** Values are text, or what the file holds; the declared type is looked at where the run starts. */
export function readFields(call: CommandCall<StartFlags>): JsonObject {
  const fields = new Map<string, Json[]>();
  const add = (name: string, value: Json) => {
    if (RESERVED_FIELDS.has(name))
      throw new UsageError(`--input ${name} cannot be given: the runtime sets it.`);
    fields.set(name, [...(fields.get(name) ?? []), value]);
  };
  for (const given of call.flags.input) {
    if (given.startsWith("@")) {
      for (const [name, value] of Object.entries(readObject(call, given.slice(1)))) add(name, value);
      continue;
    }
    const equals = given.indexOf("=");
    if (equals < 1)
      throw new UsageError(`--input takes NAME=VALUE or @FILE.json here, not "${given.slice(0, 80)}".`);
    add(given.slice(0, equals), given.slice(equals + 1));
  }
  return Object.fromEntries([...fields].map(([name, all]) => [name, all.length === 1 ? all[0]! : all]));
}

function readObject(call: CommandCall<StartFlags>, file: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(readWritten(resolve(call.cwd, file))) as Json;
  } catch (cause) {
    throw new UsageError(`--input @${file} cannot be read: ${errorText(cause)}`);
  }
  if (isObject(value)) return value;
  throw new UsageError(`--input @${file} must contain a JSON object with the fields.`);
}
