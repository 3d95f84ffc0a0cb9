/** What the rules look at: the flow as built, the files as written, and which steps are live. */
import type { Files } from "../../flow/files.ts";
import type { Flow, StepId } from "../../flow/flow.ts";
import { checksEveryVisit, fewestVisits } from "../../flow/rules.ts";
import type { Path } from "../../flow/json.ts";
import type { ToolNames } from "./tools.ts";
import type { Document, DocumentRead } from "../text/document.ts";
import type { Reach } from "./graph.ts";
import { escapeSegment } from "../text/places.ts";
import type { Graph, Sources } from "../registry/registry.ts";
import { placeInSchema } from "../registry/schemas.ts";

export type Loaded = {
  readonly name: string;
  readonly sources: Sources;
  readonly graph: Graph;
  readonly flow: Flow;
  /** null when there is no entry to start from. */
  readonly reach: Reach | null;
  readonly schemaFiles: ReadonlyMap<string, DocumentRead>;
  readonly files: Files;
  readonly tools: ToolNames;
};

/** The place of a step's entry in the registry, or of something in it. */
export function atStep(loaded: Loaded, id: StepId, ...path: readonly (string | number)[]) {
  const pointer = ["steps", id, ...path].map((part) => `/${escapeSegment(String(part))}`).join("");
  return { document: loaded.sources.registryDocument, pointer, steps: [id] };
}

/** Where a part of a step's schema was written, through `$ref` and `allOf`; null: nowhere, or in several places. */
export function schemaPlace(
  loaded: Loaded,
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
export function witness(loaded: Loaded, id: StepId, ...further: readonly StepId[]): readonly StepId[] {
  const { steps } = loaded.graph;
  const path = (loaded.reach?.pathTo(id) ?? []).filter((step) => steps.get(step)?.aside === undefined);
  return path.length === 0 ? [id, ...further] : [...path, ...further];
}

/** The fewest visits after which the verdict can end a run; Infinity: it cannot. */
export function visitsToVerdict({ flow, graph, reach }: Loaded): number {
  const live = [...(reach?.steps ?? graph.steps.keys())];
  const canCheck = checksEveryVisit(flow) || live.some((id) => graph.steps.get(id)?.kind !== "work");
  return fewestVisits(flow.stop, canCheck);
}
