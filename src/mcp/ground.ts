/** What the tools work on: the project, its agents and its journal, and the way to start commands. */
import type { Journal } from "../engine/ports.ts";
import type { Flow, Parameter } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { RunnerError } from "../run/errors.ts";
import type { Shown } from "../run/records/runs.ts";
import type { Project } from "../run/world/project.ts";
import type { AgentFiles } from "../serve/agent-files.ts";
import type { Driver } from "../serve/drive.ts";
import type { Outline } from "../tell/outline.ts";

export type McpGround = {
  readonly project: Project;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly settings: McpSettings;
  /** null: nothing is recorded yet. */
  readonly journal: () => Promise<Journal | null>;
  readonly agents: AgentFiles;
  readonly parametersOf: (flow: Flow | null) => readonly Parameter[];
  readonly draw: (outline: Outline, format: GraphFormat) => string;
  readonly driver: Driver;
  /** Commands in our own words as the user types them. */
  readonly typed: (text: string) => string;
  /** The lines that a person types next after such a run. */
  readonly next: (shown: Shown) => readonly string[];
  /** Takes secrets out of what is sent. */
  readonly redact: <T>(value: T) => T;
  /** Aborted when the server closes. */
  readonly signal: AbortSignal;
};

/** What the user said when the server was started: no call can say more. */
export type McpSettings = {
  /** Flags for every run that is started: a script or a model. */
  readonly starting: readonly string[];
  /** Flags for every run that is started or goes on: limits, the sandbox. */
  readonly driving: readonly string[];
  readonly onPermission: "deny" | "halt" | "allow";
  /** How long a call waits for the end of a run, in seconds. */
  readonly waitSeconds: number;
};

export const GRAPH_FORMATS = ["mermaid", "text"] as const;
export type GraphFormat = (typeof GRAPH_FORMATS)[number];

/** RUN_UNKNOWN where nothing is recorded. */
export async function recordsFor({ journal }: McpGround, ref: string): Promise<Journal> {
  const found = await journal();
  if (found !== null) return found;
  throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": no runs are recorded yet.`);
}

/** A call of a tool. */
export type McpCall = {
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  /** Once the signal is aborted: whether the client gave the call up, and did not only go away. */
  readonly isCancelled: () => boolean;
  /** null: the client does not want to hear. */
  readonly progress: ((done: number, message: string) => void) | null;
  /** Whether the person at the client can be asked. */
  readonly canAsk: boolean;
  /** What the person said to a question that this call led to before. */
  readonly said: SaidToQuestion | null;
};

export type SaidToQuestion = AskedOf & { readonly answer: Json | null };

/** The question of a run that a person at the client is asked; `round`: the how-manyth of its call. */
export type AskedOf = { readonly run: string; readonly question: string; readonly round: number };

export type McpAnswer =
  | {
      readonly kind: "document";
      readonly document: JsonObject;
      readonly isError: boolean;
      /** What comes before the document for those who read only text. */
      readonly headline: string;
    }
  | { readonly kind: "ask"; readonly asked: AskedOf; readonly message: string; readonly schema: JsonObject };

export type McpTool = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** Whether it only looks. */
  readonly isLook: boolean;
  readonly call: (call: McpCall, ground: McpGround) => Promise<McpAnswer>;
};

export function documentAnswer(document: object, headline = ""): McpAnswer {
  return { kind: "document", document: document as JsonObject, isError: false, headline };
}
