/** What an agent file says beside the graph. Part of the Flow, so that a run keeps the settings it began with. */
import type { Module } from "./flow.ts";
import type { JsonObject } from "./json.ts";
import type { McpServers } from "./mcp.ts";

export type Settings = {
  /** How the written form names the way a run ends, with its configuration as written. */
  readonly verdict: { readonly type: string; readonly config: JsonObject };
  readonly boundaries: {
    readonly allowedTools: readonly string[];
    readonly permissionMode: PermissionMode;
    readonly sandbox: Sandbox;
  };
  readonly github: GitHub;
  readonly actions: Actions;
  readonly worktree: {
    readonly enabled: boolean;
    readonly root: string;
    /** What git does not have and the run needs: paths below the root of the repository. Absent in earlier records. */
    readonly copy?: readonly string[];
  };
  readonly finalize: Finalize;
  readonly logging: {
    /** Whether log files are written without being asked for. */
    readonly enabled: boolean;
    /** Below the project. */
    readonly directory: string;
    readonly format: "jsonl" | "text";
    readonly maxFiles: number | null;
  };
  /** Record each resolved schema and each validation result. */
  readonly inspectSchemas: boolean;
  /** What AskUserQuestion is answered with. */
  readonly autoResponse: string;
  /** Questions to people, where the file says something about them. */
  readonly questions?: {
    /** `person`: AskUserQuestion goes to a person, where there is one. */
    readonly askUser?: "auto" | "person";
    readonly expireMs?: number;
  };
  /** What ends an attempt, or a run, that gets nowhere; absent: what is usual. */
  readonly watch?: {
    /** How long an agent with a loop of its own may give no sign of life. */
    readonly inactivityMs?: number;
    /** How often in a row a step may do the very same with the very same result. */
    readonly repeats?: number;
  };
  /** Servers whose tools steps may be given. Absent: none. */
  readonly mcpServers?: McpServers;
};

/** From the strictest to the freest. */
export type PermissionMode = "plan" | "default" | "acceptEdits" | "bypassPermissions";

export type Sandbox = {
  /** The agent file says something about it. */
  readonly asked?: true;
  readonly enabled: boolean;
  readonly network: {
    /** The agent file says something about the network. */
    readonly asked?: true;
    readonly mode: "trusted" | "none" | "custom";
    readonly trustedDomains: readonly string[];
  };
  readonly filesystem: { readonly allowedPaths: readonly string[] };
  readonly excludedCommands: readonly string[];
  readonly allowUnsandboxedCommands: boolean;
};

export type ClosureAction = "close" | "label-only" | "label-and-close";

export type GitHub = {
  readonly enabled: boolean;
  /** The agent file says what is to be labelled or closed there: otherwise nothing is written to issues. */
  readonly asked?: true;
  /** Every string-valued label key as written; `completion` is apart. */
  readonly labels: { readonly [key: string]: string };
  readonly completion: { readonly add: readonly string[]; readonly remove: readonly string[] };
  readonly defaultClosureAction: ClosureAction;
  /** Further labels that an answer may add and remove. */
  readonly answerLabels?: readonly string[];
  /** Texts of answers may mention people and give commands to bots. */
  readonly mentions?: true;
};

export type Actions = {
  readonly enabled: boolean;
  readonly types: readonly string[];
  readonly outputFormat: string | null;
  /** As they are written. */
  readonly handlers: { readonly [type: string]: string };
  /** Those of the handlers that are files of the agent. */
  readonly modules?: { readonly [type: string]: Module };
  /** A block may act on other issues than the one that the run is about. */
  readonly otherIssues?: true;
};

export type Finalize = {
  readonly autoMerge: boolean;
  readonly push: boolean;
  readonly remote: string;
  readonly createPr: boolean;
  readonly prTarget: string | null;
};
