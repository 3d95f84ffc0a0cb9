/** Which channel supplies a name, before anything runs and as it runs: each one beside all that come later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow, Parameter, Step } from "../../src/flow/flow.ts";
import type { Scene } from "../../src/flow/scene.ts";
import { supplierOf } from "../../src/flow/reads.ts";
import { supplied } from "../../src/prompts/variables.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const parameter = (more: Partial<Parameter> = {}): Parameter => ({
  name: "x",
  type: "string",
  description: "",
  flag: "--x",
  required: false,
  ...more,
});
const OTHER = parameter({ name: "y", flag: "--y", required: true });
const NEED = { variable: "x", from: { step: "b", key: "plan" }, required: false };
const BUILT_IN = { builtIn: { values: { x: "built in" } } };

/** Channels that know the name; those that are not named do not. */
type Channel = "built-in" | "parameter" | "given" | "input" | "constant" | "handoff" | "open";

function world(channels: readonly Channel[]): { flow: Flow; step: Step; scene: Scene; name: string } {
  const has = (channel: Channel) => channels.includes(channel);
  const name = has("handoff") ? "b_x" : "x";
  const rename = <T extends object>(value: T) =>
    JSON.parse(JSON.stringify(value).replaceAll('"x"', JSON.stringify(name))) as T;
  const flow = sketchFlow(
    { a: { edges: { next: "b" } }, b: { edges: { next: "a" }, handoff: ["x"] } },
    {
      parameters: has("parameter") ? [OTHER, rename(parameter())] : [OTHER],
      constants: has("constant") ? { [name]: "constant" } : { y: "other" },
      ...(has("open") && { openArguments: true as const }),
    },
  );
  const plain = flow.steps["a"]!;
  const step: Step = {
    ...plain,
    prompt: { ...plain.prompt, ...(has("built-in") && rename(BUILT_IN)) },
    needs: has("input") ? [{ ...NEED, variable: "y" }, rename(NEED)] : [],
  };
  const scene: Scene = {
    args: has("given") ? { [name]: "given" } : {},
    input: "",
    iterations: 1,
    visits: {},
    handoff: {
      ...(has("handoff") && { b: { x: "handed on", plan: "input" } }),
      ...(has("input") && !has("handoff") && { b: { plan: "input" } }),
    },
    last: null,
  };
  return { flow, step, scene, name };
}

const ROWS: readonly (readonly [channels: readonly Channel[], before: string, value: string | null])[] = [
  [["built-in", "parameter", "given", "input", "constant", "handoff", "open"], "constant", "built in"],
  [["parameter", "given", "input", "constant", "handoff", "open"], "parameter", "given"],
  [["parameter", "input", "constant", "open"], "parameter", "input"],
  [["input", "constant", "handoff", "open"], "input", "input"],
  [["given", "input"], "input", "given"],
  [["constant", "handoff", "open"], "constant", "constant"],
  [["handoff", "open"], "handoff", "handed on"],
  [["open"], "argument", null],
  [["open", "given"], "argument", "given"],
  [["parameter"], "parameter", null],
  [[], "nobody", null],
];
for (const [channels, before, value] of ROWS) {
  test(`of ${channels.join(", ") || "nothing"}: ${before} is named, and gives ${value}`, () => {
    const { flow, step, scene, name } = world(channels);
    assert.equal(supplierOf(flow, step, name)?.kind ?? "nobody", before);
    assert.equal(supplied(flow, step, scene, name)?.value ?? null, value);
  });
}

const SURE: readonly (readonly [more: Pick<Parameter, "required" | "default">, isSure: boolean])[] = [
  [{ required: true }, true],
  [{ required: false }, false],
  [{ required: false, default: "d" }, true],
  [{ required: true, default: "d" }, true],
];
for (const [more, isSure] of SURE) {
  test(`what is ${JSON.stringify(more)} is ${isSure ? "sure" : "not sure"} to have a value`, () => {
    const { flow, step } = world([]);
    const declared = supplierOf({ ...flow, parameters: [parameter(more)] }, step, "x");
    assert.deepEqual(declared, { kind: "parameter", flag: "--x", isSure });
    const taken = supplierOf(flow, { ...step, needs: [{ ...NEED, ...more }] }, "x");
    assert.deepEqual(taken, { kind: "input", step: "b", key: "plan", isSure });
  });
}
