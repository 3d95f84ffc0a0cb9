/** What the rules look at: the flow as built, where its parts were written, and which steps are live. */
import type { Files } from "../../flow/files.ts";
import type { Flow, Step, StepId } from "../../flow/flow.ts";
import type { Path } from "../../flow/json.ts";
import { checksEveryVisit, fewestVisits } from "../../flow/rules.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import type { Declared } from "../agent/mcp.ts";
import type { Graph, Sources } from "../registry/registry.ts";
import { placeInSchema } from "../registry/schemas.ts";
import type { Document, DocumentRead } from "../text/document.ts";
import type { Where } from "../text/origin.ts";
import { escapeSegment, pointerOf } from "../text/places.ts";
import type { Finding } from "./finding.ts";
import type { Reach } from "./graph.ts";
import type { ToolNames } from "./tools.ts";

/** What all dialects have. */
export type Loaded = {
  readonly name: string;
  readonly agent: AgentSource;
  readonly agentDocument: Document;
  /** Where servers of tools are declared. */
  readonly servers: readonly Declared[];
  readonly flow: Flow;
  readonly steps: ReadonlyMap<StepId, Step>;
  /** null when there is no entry to start from. */
  readonly reach: Reach | null;
  readonly where: Where;
  readonly files: Files;
  readonly tools: ToolNames;
};

/** An agent with a steps registry, of any of its three forms. */
export type Registered = Loaded & {
  readonly sources: Sources;
  readonly graph: Graph;
  readonly schemaFiles: ReadonlyMap<string, DocumentRead>;
};

type At = Pick<Finding, "document" | "pointer" | "steps">;

/** The place of a part of the flow, whether or not it is written there. A part of a step is about that step. */
export function at({ where, agentDocument }: Pick<Loaded, "where" | "agentDocument">, ...part: Path): At {
  const place = where(part);
  const [group, id] = part;
  return {
    document: place?.document ?? agentDocument,
    pointer: pointerOf(place?.path ?? []),
    ...(group === "steps" && id !== undefined && { steps: [id] }),
  };
}

/** The place of a step's entry in the registry, or of something in it. */
export function atStep(loaded: Registered, id: StepId, ...path: readonly (string | number)[]) {
  const pointer = ["steps", id, ...path].map((part) => `/${escapeSegment(String(part))}`).join("");
  return { document: loaded.sources.registryDocument, pointer, steps: [id] };
}

/** Where a part of a step's schema was written, through `$ref` and `allOf`; null: nowhere, or in several places. */
export function schemaPlace(
  loaded: Registered,
  id: StepId,
  path: Path,
): { readonly document: Document; readonly path: Path } | null {
  const { sources, schemaFiles } = loaded;
  const ref = sources.registry.steps.get(id)?.outputSchemaRef;
  if (ref?.file === undefined || ref.schema === undefined) return null;
  const { file } = sources.schema({ file: ref.file, schema: ref.schema });
  const place = placeInSchema(schemaFiles, { file, schema: ref.schema }, path);
  const read = place === null ? undefined : schemaFiles.get(place.file);
  return read?.kind === "read" ? { document: read.document, path: place!.path } : null;
}

/** The shortest way to a step, and on to where it would lead. Questions about steps are part of no way. */
export function witness(
  { reach, steps }: Loaded,
  id: StepId,
  ...further: readonly StepId[]
): readonly StepId[] {
  const path = (reach?.pathTo(id) ?? []).filter((step) => steps.get(step)?.aside === undefined);
  return path.length === 0 ? [id, ...further] : [...path, ...further];
}

/** The fewest visits after which the verdict can end a run; Infinity: it cannot. */
export function visitsToVerdict({ flow, steps, reach }: Loaded): number {
  const live = [...(reach?.steps ?? steps.keys())];
  const canCheck = checksEveryVisit(flow) || live.some((id) => steps.get(id)?.kind !== "work");
  return fewestVisits(flow.stop, canCheck);
}
