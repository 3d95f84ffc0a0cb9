/** Rows about machine.yaml. */
import type { StageChanges } from "../stage-world.ts";
import { CHECK, build, inputs, machine, plan } from "./row.ts";

const withMachine = (
  more: object,
  ...found: readonly string[]
): readonly [StageChanges, readonly string[]] => [{ machine: { entry: "plan", ...more } }, found];
export const MACHINES: readonly (readonly [name: string, StageChanges, readonly string[]])[] = [
  ["an empty file", { "machine.yaml": "", ...lone() }, []],
  ["no file and one first stage", { machine: undefined, ...lone() }, []],
  ["no file and every stage led to", { machine: undefined }, [machine("/entry", "StageDefinitionInvalid")]],
  [
    "no file and two first stages",
    { machine: undefined, ...lone(), other: { id: "other", next: "review" } },
    [machine("/entry", "StageDefinitionInvalid")],
  ],
  ["an unknown entry", { machine: { entry: "pln" } }, [machine("/entry", "StageDefinitionInvalid")]],
  [
    "an entry in a file that cannot be read",
    { machine: { entry: "first" }, first: "nothing" },
    ["error StageDefinitionInvalid stages/first.md"],
  ],
  ["a list", { "machine.yaml": "- a" }, [machine("", "StageDefinitionInvalid")]],
  [
    "a tab, and stages that need what stands there",
    {
      "machine.yaml": "checks:\n\ttests: { command: npm test }\n",
      plan: { assert: ["tests"], gate: "tests", allowedTools: ["Read", "mcp__docs__search"] },
    },
    [machine("", "StageDefinitionInvalid")],
  ],
  ["a key twice", { "machine.yaml": "entry: plan\nentry: build\n" }, [machine("", "StageDefinitionInvalid")]],
  ["an unknown key", ...withMachine({ entri: 1 }, machine("/entri", "UNKNOWN-KEY", "warning"))],
  ["its own name", ...withMachine({ id: "release" })],
  ["another name", ...withMachine({ id: "other" }, machine("/id", "AC-NAME", "warning"))],
  [
    "an unknown joinRule",
    ...withMachine({ joinRule: "any" }, machine("/joinRule", "StageDefinitionInvalid")),
  ],
  ["limits", ...withMachine({ limits: { visits: 12 } })],
  [
    "no visits",
    ...withMachine({ limits: { visits: 0 } }, machine("/limits/visits", "StageDefinitionInvalid")),
  ],
  ["limits on what a run may spend", ...withMachine({ limits: { turns: 5, costUsd: 1 } })],
  [
    "a check that a stage asserts",
    { machine: { entry: "plan", checks: { tests: CHECK } }, build: { assert: ["tests"] } },
    [],
  ],
  [
    "a check that is a gate",
    { machine: { entry: "plan", checks: { tests: CHECK } }, build: { gate: "tests" } },
    [],
  ],
  [
    "a check that nobody asks for",
    ...withMachine(
      { checks: { tests: CHECK } },
      machine("/checks/tests", "CHECK-VALIDATOR-UNUSED", "warning"),
    ),
  ],
  [
    "an unknown check",
    { build: { assert: ["tests"], gate: "ready" } },
    [build("/assert/0", "CHECK-UNKNOWN"), build("/gate", "CHECK-UNKNOWN")],
  ],
  [
    "a check without command",
    {
      machine: { entry: "plan", checks: { tests: { type: "command", successWhen: "empty" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/command", "StageDefinitionInvalid")],
  ],
  [
    "a check with an unknown rule",
    {
      machine: { entry: "plan", checks: { tests: { ...CHECK, successWhen: "good" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/successWhen", "CHECK-SUCCESS")],
  ],
  [
    "a check that cannot fail",
    {
      machine: { entry: "plan", checks: { tests: { ...CHECK, command: "npm test || true" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/command", "CHECK-CANNOT-FAIL", "warning")],
  ],
  [
    "a forbidden name of a check",
    {
      "machine.yaml":
        "entry: plan\nchecks: { constructor: { type: command, command: x, successWhen: empty } }\n",
      build: { assert: ["constructor"] },
    },
    [machine("/checks/constructor", "FORBIDDEN-NAME")],
  ],
  ["assert that is no list", { build: { assert: "tests" } }, [build("/assert", "StageFieldType")]],
  [
    "output beside the payload",
    { build: { output: { x: "upstream.y" } } },
    [build("/output/x", "StageDefinitionInvalid")],
  ],
  [
    "output of a name that nothing could read",
    { build: { output: { "a b": "parsed.green" } } },
    [build("/output/a b", "StageDefinitionInvalid")],
  ],
  [
    "output of a field that is not named",
    { build: { output: { x: "parsed.red" } } },
    [build("/output/x", "HANDOFF-FIELD", "warning")],
  ],
  [
    "inputs of another type",
    ...withMachine(
      { inputs: { type: "array" } },
      machine("/inputs", "StageDefinitionInvalid"),
      plan("/body#task", "StageCtxUnresolved"),
    ),
  ],
  [
    "inputs that the runtime writes",
    ...withMachine(
      { inputs: { ...inputs, properties: { ...inputs.properties, upstream: {}, host: {} } } },
      machine("/inputs/properties/upstream", "StageDefinitionInvalid"),
      machine("/inputs/properties/host", "StageDefinitionInvalid"),
    ),
  ],
  [
    "inputs of one flag",
    ...withMachine(
      {
        inputs: {
          ...inputs,
          properties: { ...inputs.properties, a_b: { type: "string" }, "a-b": { type: "string" } },
        },
      },
      machine("/inputs/properties/a-b", "PARAM-FLAG"),
    ),
  ],
  [
    "an input whose default does not fit",
    ...withMachine(
      { inputs: { ...inputs, properties: { ...inputs.properties, n: { type: "integer", default: "x" } } } },
      machine("/inputs/properties/n/default", "PARAM-DEFAULT"),
    ),
  ],
  ["an agent file with nothing in it", { "agent.json": "{}" }, []],
  [
    "a sandbox that is opened to every host",
    {
      "agent.json":
        '{"runner":{"boundaries":{"sandbox":{"network":{"mode":"custom","trustedDomains":["*"]}}}}}',
    },
    ["error SANDBOX-HOST agent.json /runner/boundaries/sandbox/network/trustedDomains/0"],
  ],
  ["an agent file that is broken", { "agent.json": "{" }, ["error AC-SERVICE-002 agent.json"]],
  [
    "an agent file with what stages do not have",
    {
      "agent.json":
        '{"parameters":{"x":{"type":"string","cli":"--x","description":"x"}},"runner":{"verdict":{"type":"detect:graph"}}}',
    },
    [
      "warning CONFIG-NOT-ACTED-ON agent.json /parameters",
      "warning CONFIG-NOT-ACTED-ON agent.json /runner/verdict",
    ],
  ],
  ["a registry beside the stages", { "steps_registry.json": "{}" }, ["error DIALECT steps_registry.json"]],
  [
    "a registry of another name",
    { "agent.json": '{"runner":{"flow":{"prompts":{"registry":"r.json"}}}}', "r.json": "{}" },
    ["error DIALECT r.json"],
  ],
];

/** plan → build → review. */
function lone(): StageChanges {
  return { build: { next: "review" } };
}
