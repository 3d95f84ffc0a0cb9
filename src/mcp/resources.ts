/** Runs and agents as resources: `lockstep://runs/ID/why` and the like. */
import type { JsonObject } from "../flow/json.ts";
import { listRuns } from "../run/records/runs.ts";
import { fitted, MOST_IN_RESOURCE, plainDocument, plainText } from "./fit.ts";
import type { McpGround } from "./ground.ts";
import * as looks from "./looks.ts";

type Kind = {
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly mimeType: string;
  /** `name`: of the run or of the agent. */
  readonly read: (ground: McpGround, name: string) => Promise<object | string>;
};

const JSON_TYPE = "application/json";

const KINDS: readonly Kind[] = [
  kind("runs/{run}", "Run", "The whole report of a run.", looks.runSeen),
  kind("runs/{run}/result", "Result", "What a run made.", looks.resultSeen),
  kind(
    "runs/{run}/why",
    "Why",
    "The chain behind the last decision of a run.",
    async (ground, run) => await looks.whySeen(ground, run),
  ),
  kind(
    "runs/{run}/log",
    "Log",
    "What happened, line by line.",
    async (ground, run) => await looks.logSeen(ground, run),
  ),
  kind(
    "runs/{run}/transcript",
    "Transcript",
    "The conversations of a run.",
    async (ground, run) => await looks.transcriptSeen(ground, run),
  ),
  kind("agents/{agent}/findings", "Findings", "What `lockstep check` finds in an agent.", looks.findingsSeen),
  {
    ...kind(
      "agents/{agent}/graph",
      "Graph",
      "The steps of an agent, as a Mermaid flowchart.",
      async (ground, agent) => (await looks.graphSeen(ground, agent, "mermaid")).graph,
    ),
    mimeType: "text/vnd.mermaid",
  },
];

function kind(path: string, name: string, description: string, read: Kind["read"]): Kind {
  return { path, name, description, mimeType: JSON_TYPE, read };
}

export function resourceTemplates(): readonly JsonObject[] {
  return KINDS.map(({ path, name, description, mimeType }) => ({
    uriTemplate: `lockstep://${path}`,
    name,
    description,
    mimeType,
  }));
}

const LISTED_RUNS = 20;

/** The newest runs, and the drawing of each agent. */
export async function listedResources({ journal, agents }: McpGround): Promise<readonly JsonObject[]> {
  const found = await journal();
  const runs = found === null ? [] : await listRuns(found, { limit: LISTED_RUNS });
  return [
    ...runs.map(({ run, agent, state, createdAt }) => ({
      uri: `lockstep://runs/${encodeURIComponent(run)}`,
      name: plainText(`${agent} ${run}`),
      description: plainText(`Run of ${agent}, ${state}, begun ${createdAt}`),
      mimeType: JSON_TYPE,
    })),
    ...agents.names().map((agent) => ({
      uri: `lockstep://agents/${encodeURIComponent(agent)}/graph`,
      name: plainText(`Graph of ${agent}`),
      mimeType: "text/vnd.mermaid",
    })),
  ];
}

/** null: there is no such kind of resource. */
export async function readResource(ground: McpGround, uri: string): Promise<JsonObject | null> {
  for (const { path, mimeType, read } of KINDS) {
    const name = nameIn(path, uri);
    if (name === null) continue;
    const value = ground.redact(await read(ground, name));
    const text =
      typeof value === "string"
        ? plainText(value)
        : JSON.stringify(fitted(plainDocument(value as JsonObject), MOST_IN_RESOURCE), null, 2);
    return { uri, mimeType, text };
  }
  return null;
}

/** What stands for the part in braces. */
function nameIn(path: string, uri: string): string | null {
  const [before = "", after = ""] = `lockstep://${path}`.split(/\{\w+\}/);
  if (!uri.startsWith(before) || !uri.endsWith(after) || uri.length <= before.length + after.length)
    return null;
  const name = uri.slice(before.length, uri.length - after.length);
  try {
    return name.includes("/") ? null : decodeURIComponent(name);
  } catch {
    return null;
  }
}
