/** The act of a block that code of the project carries out. */
import type { JsonObject } from "../../flow/json.ts";
import { shownInLine } from "../../flow/text/harmless.ts";
import type { Action } from "../../flow/action-blocks.ts";
import { applied, failedEffect, type Act } from "./ledger.ts";
import type { ModuleHost } from "../modules/module-host.ts";

export type ModuleAct = {
  readonly key: string;
  readonly action: Action;
  readonly file: string;
  readonly host: () => Promise<ModuleHost>;
  /** What the module receives besides the action. */
  readonly context: JsonObject;
  /** An earlier attempt was begun, and its end is not recorded. */
  readonly wasBegun: boolean;
  readonly signal: AbortSignal;
};

/**
 * Whether an attempt without a recorded end was carried out is for the module to say: its export `wasDone` is asked.
 * Without one it is not called a second time.
 */
export function moduleAct({ key, action, file, host, context, wasBegun, signal }: ModuleAct): Act {
  const about = `${file} with the block of the type "${action.type}"`;
  const { type, content, metadata } = action;
  const call = async (name: "default" | "wasDone") =>
    await (await host()).call([name], [{ type, content, metadata }, context], signal);
  let unknown: string | null = null;
  return {
    kind: "action:module",
    key,
    target: file,
    detail: `call ${about}`,
    find: async () => {
      const asked = await call("wasDone");
      if (asked.kind === "gave" && asked.value === false) return null;
      if (asked.kind === "gave" && asked.value === true) return `called ${about}`;
      unknown = asked.kind === "threw" ? asked.message : "it does not export wasDone to ask it";
      return null;
    },
    perform: async () => {
      if (wasBegun && unknown !== null)
        return failedEffect(
          `${about} was not called a second time, and whether the first was carried out is not known: ${unknown}`,
        );
      const result = await call("default");
      if (result.kind === "absent") return failedEffect(`${file} has no function as its default export`);
      if (result.kind === "threw")
        return failedEffect(`${about} failed: ${result.code}: ${shownInLine(result.message, 400)}`);
      const said =
        typeof result.value === "string" && result.value !== "" ? `: ${shownInLine(result.value, 400)}` : "";
      return applied(`called ${about}${said}`);
    },
  };
}
