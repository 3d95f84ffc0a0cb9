/** Agents that end by their verdict: one without gates, one that goes round among gates. */
import { agentFiles, type StepFile } from "./project.ts";

export type Verdict = { readonly type: string; readonly config?: object };

type More = {
  readonly runner?: object;
  readonly registry?: object;
  readonly parameters?: object;
  /** Further files, below the agent's folder. */
  readonly files?: { readonly [path: string]: string };
};

const bare = { structuredGate: undefined, outputSchemaRef: undefined };
const step = (kind: StepFile["kind"], transitions: StepFile["transitions"], more: object = {}): StepFile => ({
  kind,
  intents: Object.keys(transitions),
  transitions,
  properties: { signal: { type: "string" }, summary: { type: "string" } },
  more,
});

const STEPS = {
  bare: {
    "initial.x": step("work", {}, bare),
    "continuation.x": step("work", {}, bare),
  },
  gated: {
    "initial.x": step("work", { next: { target: "continuation.x" } }),
    "continuation.x": step("work", {
      next: { target: "continuation.x" },
      handoff: { target: "closure.x" },
    }),
    "closure.x": step("closure", { closing: { target: null }, repeat: { target: "closure.x" } }),
  },
} as const;

export function verdictAgent(
  form: keyof typeof STEPS,
  verdict: Verdict,
  { runner: own = {}, registry = {}, parameters = {}, files = {} }: More = {},
): { readonly [path: string]: string } {
  const boundaries = { allowedTools: ["Write"], permissionMode: "acceptEdits" };
  const runner = { flow: { systemPromptPath: "prompts/system.md" }, verdict, boundaries, ...own };
  const more = { runner, registry, agent: { parameters } };
  const further = Object.entries(files).map(([path, text]) => [`.agent/ender/${path}`, text] as const);
  return {
    ...agentFiles("ender", STEPS[form], more),
    ".agent/ender/prompts/system.md": "You are {uv-agent_name}. {uv-verdict_criteria}\n",
    ...Object.fromEntries(further),
  };
}

/** A validator for the customary entry of a verdict type, with the prompt that tells of its failure. */
export function checkedBy(
  key: string,
  command: string,
  onFailure: object = { action: "retry", maxAttempts: 3 },
): More {
  return {
    registry: {
      validators: {
        proof: {
          type: "command",
          command,
          successWhen: "exitCode:0",
          failurePattern: "no-proof",
          extractParams: { stderr: "stderr" },
        },
      },
      failurePatterns: {
        "no-proof": { description: "There is no proof", edition: "failed", adaptation: "no-proof" },
      },
      validationSteps: {
        [key]: {
          stepId: key,
          name: "Proof",
          c2: "retry",
          c3: "x",
          validationConditions: [{ validator: "proof" }],
          onFailure,
        },
      },
    },
    files: { "prompts/steps/retry/x/f_failed_no-proof.md": "The proof is missing: {{stderr}}" },
  };
}
