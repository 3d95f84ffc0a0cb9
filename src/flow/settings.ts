/**
 * What an agent file says beside the graph: each setting declared once. Its reader, its type in the flow, its default, the
 * JSON Schema for editors, the reference page and `explain` follow from the declaration. Settings are part of the Flow, so
 * that a run keeps those it began with.
 */
import type { Module, StepKind } from "./flow.ts";
import type { JsonObject } from "./json.ts";
import type { McpServers } from "./mcp.ts";
import { flag, group, list, map, number, openGroup, text, type Reads, type RecordedShape } from "./shape.ts";

export const IF_INTERRUPTED = text(
  "What happens to a step that was running when its process died: it runs again, a person is asked, or the run fails.",
  { enum: ["retry", "ask", "fail"] },
);

export const QUESTIONS = group("Questions to people.", {
  askUser: text(
    "Who answers AskUserQuestion. auto: askUserAutoResponse. person: a person, if one is available.",
    { enum: ["auto", "person"], usual: "auto" },
  ),
  expireAfter: text("How long a question stays open, such as 30m, 24h or 7d; no limit by default.", {
    pattern: "^[1-9]\\d{0,9}(ms|s|m|h|d)$",
  }),
});

export const WATCH = group("What ends an attempt or a run that makes no progress.", {
  inactivityMs: number(
    "Milliseconds without output after which a coding agent is stopped; half an hour by default.",
    { min: 1, integer: true },
  ),
  repeats: number(
    "How often in a row a step may make the same calls with the same result before it is warned, and then stopped.",
    { min: 2, integer: true },
  ),
});

export const SANDBOX = group("What commands can access.", {
  enabled: flag("Whether commands run in a sandbox. A sandbox that the user requested stays on.", {
    default: true,
  }),
  network: group("Which hosts.", {
    mode: text("trusted: common package hosts and the listed ones; none; custom: only the listed ones.", {
      enum: ["trusted", "none", "custom"],
      default: "trusted",
    }),
    trustedDomains: list(
      "Hosts; *.example.com for all subdomains, :8080 for a single port.",
      text("A host."),
      { default: [] },
    ),
  }),
  filesystem: group("Which folders.", {
    allowedPaths: list("More folders that commands may write to, relative to the project.", text("A path."), {
      default: [],
    }),
  }),
  excludedCommands: list("No effect: no command runs outside the sandbox.", text("A command."), {
    default: [],
  }),
  allowUnsandboxedCommands: flag("No effect: the model cannot leave the sandbox.", { default: false }),
});

export const BOUNDARIES = group("What the model may use.", {
  allowedTools: list('Tools by name; "*" is all of them.', text("A tool."), {
    default: ["*"],
  }),
  permissionMode: text("What the model may do without asking.", {
    enum: ["default", "plan", "acceptEdits", "bypassPermissions"],
  }),
  sandbox: SANDBOX,
});

export const GITHUB = group("GitHub.", {
  enabled: flag("Whether GitHub is used at all.", { default: true }),
  labels: openGroup(
    "Label names. Prompts read each as {uv-label_<key>}; inProgress and blocked show the state of the run on the issue.",
    {
      completion: group("Issue labels to change when the run is complete.", {
        add: list("Labels to add.", text("A label."), { default: [] }),
        remove: list("Labels to remove.", text("A label."), { default: [] }),
      }),
    },
    text("A label."),
  ),
  defaultClosureAction: text("What happens to the issue when the run is complete.", {
    enum: ["close", "label-only", "label-and-close"],
    default: "close",
  }),
  answerLabels: list(
    "Labels that an answer may add and remove, in addition to those in labels.",
    text("A label.", { filled: true }),
    { default: [], later: true },
  ),
  mentions: flag(
    "Whether text from answers posted on GitHub may mention people and teams and trigger bots.",
    { default: false, later: true },
  ),
});

export const ACTIONS = group("Action blocks in model output.", {
  enabled: flag("Whether they are carried out.", { default: false }),
  types: list("The types that are carried out.", text("A type."), { default: [] }),
  outputFormat: text(
    "The info string of fenced blocks that name their type inside; a type itself also works as info string.",
    { default: null },
  ),
  otherIssues: flag("Whether a block may act on issues other than the run's own.", {
    default: false,
    later: true,
  }),
  handlers: map(
    "The handler of each type; builtin:log by default.",
    text("A built-in handler, or a module such as ./handlers/plan.mjs."),
  ),
});

/** Neither absolute nor with a `..` in it. */
const PATH_WITHIN = "^(?![/~]|[A-Za-z]:|(?:.*/)?\\.\\.(?:/|$))[^\\\\]+$";

export const WORKTREE_ROOT = ".worktrees";

export const WORKTREE = group("A git worktree for the run.", {
  enabled: flag("Whether the run gets one.", { default: false }),
  root: text("The folder of worktrees, relative to the repository root.", {
    default: WORKTREE_ROOT,
    filled: true,
  }),
  copy: list(
    "Untracked files and folders that the run needs, relative to the repository root.",
    text("A path in the repository.", { pattern: PATH_WITHIN }),
    { default: [] },
  ),
});

export const PLACE = group("How the files of the run come to another machine, if a fleet drives it.", {
  carry: list(
    "Ignored files and folders that belong to the run, relative to the repository root.",
    text("A path in the repository.", { pattern: PATH_WITHIN }),
  ),
  prepare: text("A command that is run whenever its files were put in place, such as npm ci.", {
    filled: true,
  }),
});

export const FINALIZE = group("What happens to the branch of a successful run.", {
  autoMerge: flag("Merge it.", { default: true }),
  push: flag("Push the result.", { default: false }),
  remote: text("Push to this remote.", { default: "origin" }),
  createPr: flag("Open a pull request instead of merging.", { default: false }),
  prTarget: text("The pull request's target branch.", { default: null }),
});

export const LOGGING = group("Log files; if set, each run writes one.", {
  directory: text("Their folder, relative to the project.", { default: "logs" }),
  format: text("Their form.", { enum: ["jsonl", "text"], default: "jsonl" }),
  level: text("The lowest level of their lines; the first line of a file always stays.", {
    enum: ["debug", "info", "warn", "error"],
    default: "debug",
    later: true,
  }),
  maxFiles: number("How many log files of the agent to keep; all by default.", {
    default: null,
    min: 1,
    integer: true,
  }),
});

/** A member that flows of earlier versions lack, or that is recorded only where it is not the default. */
type Later<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>;

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
  readonly worktree: Later<RecordedShape<Reads<typeof WORKTREE>>, "copy">;
  readonly finalize: Finalize;
  /** Absent: the file says nothing about it. */
  readonly place?: RecordedShape<Reads<typeof PLACE>>;
  readonly logging: Later<RecordedShape<Reads<typeof LOGGING>>, "level"> & {
    /** Whether log files are written without being asked for. */
    readonly enabled: boolean;
  };
  /** Record each resolved schema and each validation result. */
  readonly inspectSchemas: boolean;
  /** What AskUserQuestion is answered with. */
  readonly autoResponse: string;
  /** Questions to people, where the file says something about them. */
  readonly questions?: Omit<RecordedShape<Reads<typeof QUESTIONS>>, "expireAfter"> & {
    readonly expireMs?: number;
  };
  /** What ends an attempt, or a run, that gets nowhere; absent: what is usual. */
  readonly watch?: RecordedShape<Reads<typeof WATCH>>;
  /** Servers whose tools steps may be given. Absent: none. */
  readonly mcpServers?: McpServers;
};

/** From the strictest to the freest. */
export type PermissionMode = "plan" | "default" | "acceptEdits" | "bypassPermissions";

/** What a step of this kind may do when neither it nor the agent says otherwise. */
export const MODE_BY_KIND: { readonly [kind in StepKind]: PermissionMode } = {
  work: "acceptEdits",
  verify: "plan",
  close: "acceptEdits",
};

/** The agent file says something about it. */
type Asked = { readonly asked?: true };

export type Sandbox = RecordedShape<Reads<typeof SANDBOX>> & Asked & { readonly network: Asked };

export type ClosureAction = "close" | "label-only" | "label-and-close";

export type GitHub = Later<
  Omit<RecordedShape<Reads<typeof GITHUB>>, "labels">,
  "answerLabels" | "mentions"
> & {
  /** The agent file says what is to be labelled or closed there: otherwise nothing is written to issues. */
  readonly asked?: true;
  /** Every string-valued label key as written; `completion` is apart. */
  readonly labels: { readonly [key: string]: string };
  readonly completion: { readonly add: readonly string[]; readonly remove: readonly string[] };
};

export type Actions = Later<RecordedShape<Reads<typeof ACTIONS>>, "otherIssues"> & {
  /** Those of the handlers that are files of the agent. */
  readonly modules?: { readonly [type: string]: Module };
};

export type Finalize = RecordedShape<Reads<typeof FINALIZE>>;
