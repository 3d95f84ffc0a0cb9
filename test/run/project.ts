/** A project on disk for tests that go in by the public door: files written below a temporary folder. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";

const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** Where the user of these projects is at home: beside them, so that their commands can be confined. */
export function homeBeside(): string {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-home-"));
  made.push(folder);
  return folder;
}

/** Paths below the project root → text. The folder is removed when the test file is done. */
export function projectWith(files: { readonly [path: string]: string }): string {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-project-"));
  made.push(folder);
  writeFiles(folder, files);
  return folder;
}

export function writeFiles(folder: string, files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

export type StepFile = {
  readonly kind: "work" | "verification" | "closure";
  readonly intents: readonly string[];
  readonly transitions: { readonly [intent: string]: object };
  readonly gate?: object;
  readonly properties?: object;
  readonly more?: object;
};

/** A step by the ways that lead out of it; null: the end. */
export function stepTo(
  kind: StepFile["kind"],
  to: { readonly [intent: string]: string | null },
  more: Partial<StepFile> = {},
): StepFile {
  const transitions = Object.entries(to).map(([intent, target]) => [intent, { target }] as const);
  return { kind, intents: Object.keys(to), transitions: Object.fromEntries(transitions), ...more };
}

/** What a registry holds besides, so that `closure.a` ends only where there is a file `proof`. */
export const PROVEN = {
  validators: {
    proof: {
      type: "command",
      command: "test -f proof",
      successWhen: "exitCode:0",
      failurePattern: "unproven",
    },
  },
  failurePatterns: { unproven: { description: "No proof", edition: "failed", params: [] } },
  validationSteps: {
    "closure.a": {
      stepId: "closure.a",
      name: "Proof",
      c2: "retry",
      c3: "a",
      validationConditions: [{ validator: "proof" }],
      onFailure: { action: "retry", maxAttempts: 3 },
    },
  },
};

/** An agent of the gate dialect with just the steps given; each has its prompt and its schema. */
export function agentFiles(
  name: string,
  steps: { readonly [id: string]: StepFile },
  more: { readonly runner?: object; readonly registry?: object; readonly agent?: object } = {},
): { readonly [path: string]: string } {
  const folder = `.agent/${name}`;
  const files: { [path: string]: string } = {};
  const registered: { [id: string]: object } = {};
  const schemas: { [id: string]: object } = {};
  for (const [id, step] of Object.entries(steps)) {
    const [c2 = "", c3 = ""] = id.split(".");
    registered[id] = {
      stepId: id,
      name: id,
      stepKind: step.kind,
      c2,
      c3,
      edition: "default",
      uvVariables: [],
      outputSchemaRef: { file: "steps.schema.json", schema: id },
      structuredGate: {
        allowedIntents: step.intents,
        intentSchemaRef: "#/properties/next_action/properties/action",
        intentField: "next_action.action",
        ...step.gate,
      },
      transitions: step.transitions,
      ...step.more,
    };
    schemas[id] = {
      type: "object",
      required: ["stepId", "next_action"],
      properties: {
        stepId: { const: id },
        next_action: {
          type: "object",
          required: ["action"],
          properties: {
            action: { type: "string", enum: step.intents },
            reason: { type: "string" },
            details: { type: "object", properties: { target: { type: "string" } } },
          },
        },
        ...step.properties,
      },
    };
    files[`${folder}/prompts/steps/${c2}/${c3}/f_default.md`] = `Do ${id}.\n`;
  }
  files[`${folder}/agent.json`] = JSON.stringify({
    version: "1.0.0",
    name,
    displayName: name,
    description: "A test agent",
    runner: {
      flow: { systemPromptPath: "prompts/system.md" },
      verdict: { type: "detect:graph", config: { maxIterations: 20 } },
      boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
      ...more.runner,
    },
    ...more.agent,
  });
  files[`${folder}/steps_registry.json`] = JSON.stringify({
    agentId: name,
    version: "1.0.0",
    c1: "steps",
    entryStep: Object.keys(steps)[0],
    steps: registered,
    ...more.registry,
  });
  files[`${folder}/schemas/steps.schema.json`] = JSON.stringify(schemas);
  files[`${folder}/prompts/system.md`] = "You are {uv-agent_name}.\n";
  return files;
}
