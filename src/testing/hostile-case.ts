/** A fuzzed run as a test of a file. */
import type { HookResult } from "../flow/event.ts";
import { NOTHING_AROUND, type FlowTest } from "../flow/flow-test.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import type { FuzzRecord } from "./hostile-surroundings.ts";

/** The same run as a test, with nothing expected yet. */
export function testOf(
  run: FuzzRecord,
  name: string,
  { args, input }: { readonly args: JsonObject; readonly input: string },
): FlowTest {
  const hooks = Object.entries(run.hooks).map(([path, results]) => [path, results.map(hookGiven)] as const);
  const checks = Object.entries(run.checks).filter(([, given]) => given.some(({ kind }) => kind !== "pass"));
  const tools = Object.entries(run.tools).filter(([tool, given]) =>
    given.some(({ ok, content }) => !ok || content !== `${tool} done`),
  );
  return {
    name,
    file: "fuzz.yaml",
    line: 1,
    params: args,
    input,
    script: run.script.map((reply) => ({ line: 0, ...reply })),
    around: {
      ...NOTHING_AROUND,
      checks: Object.fromEntries(checks),
      tools: Object.fromEntries(tools),
      hooks: Object.fromEntries(hooks.filter(([, given]) => given.some((value) => value !== null))),
      sights: run.sights.includes(true) ? run.sights : [],
    },
    ground: { kind: "memory" },
    expect: { lines: {}, values: {} },
    only: false,
    generated: false,
    covers: [],
  };
}

function hookGiven(result: HookResult): Json {
  if (result.kind === "absent") return null;
  return result.kind === "gave" ? result.value : { throws: result.message };
}

export function hookResult(value: Json): HookResult {
  if (value === null) return { kind: "absent" };
  return isObject(value) && typeof value.throws === "string"
    ? { kind: "threw", code: "Error", message: value.throws }
    : { kind: "gave", value };
}
