/** What the rules look at: the flow as built, where its parts were written, and which steps are live. */
import type { Files } from "../../flow/files.ts";
import type { Flow, Step, StepId } from "../../flow/flow.ts";
import { readPath, type Json, type JsonSchema, type Path } from "../../flow/json.ts";
import { checksEveryVisit, fewestVisits } from "../../flow/rules.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import type { Declared } from "../agent/mcp.ts";
import type { WrittenLimits, WrittenStepLimits } from "../../flow/spending.ts";
import type { Graph, Sources } from "../registry/registry.ts";
import { placeInSchema, placeOfRef } from "../registry/schemas.ts";
import type { Document, DocumentRead } from "../text/document.ts";
import type { Where } from "../text/origin.ts";
import { escapeSegment, pointerOf } from "../../flow/json-pointer.ts";
import type { Finding } from "./rule.ts";
import type { Reach } from "../../flow/graph.ts";
import type { ToolNames } from "./tools.ts";

/** What all dialects have. */
export type LoadedFlow = {
  readonly name: string;
  readonly agent: AgentSource;
  readonly agentDocument: Document;
  /** Where servers of tools are declared. */
  readonly servers: readonly Declared[];
  readonly flow: Flow;
  readonly steps: ReadonlyMap<StepId, Step>;
  /** null when there is no entry to start from. */
  readonly reach: Reach | null;
  /** The steps that count: a finding about any other only warns. null: all of them. */
  readonly live: ReadonlySet<StepId> | null;
  /** The entries of steps as they were read, those that are not part of the flow among them. */
  readonly entries: ReadonlyMap<StepId, StepEntry>;
  /** What a run may spend, as it is written. */
  readonly runLimits: WrittenLimits;
  readonly words: Words;
  readonly where: Where;
  readonly files: Files;
  readonly tools: ToolNames;
};

/** What every dialect says of a step. */
export type StepEntry = {
  readonly limits: WrittenStepLimits | undefined;
  /** Stages name none. */
  readonly model?: string | undefined;
};

/** What findings call the parts of a flow. */
export type Words = {
  /** A step. */
  readonly step: "step" | "stage";
  /** What holds the steps. */
  readonly agent: "agent" | "machine";
  /** What leads from one to another. */
  readonly way: "transition" | "next";
  /** How an author gets a flow to its end. */
  readonly howToEnd: string;
};

/** An agent with a steps registry, of any of its three forms. */
export type Registered = LoadedFlow & {
  readonly sources: Sources;
  readonly graph: Graph;
  readonly schemaFiles: ReadonlyMap<string, DocumentRead>;
};

export type At = Pick<Finding, "document" | "pointer" | "steps">;

/** The place of a part of the flow, whether or not it is written there. A part of a step is about that step. */
export function atPart(
  { where, agentDocument }: Pick<LoadedFlow, "where" | "agentDocument">,
  ...part: Path
): At {
  const place = where(part);
  const [group, id] = part;
  return {
    document: place?.document ?? agentDocument,
    pointer: pointerOf(place?.path ?? []),
    ...(group === "steps" && id !== undefined && { steps: [id] }),
  };
}

/** A part of what stands at a place. */
export function partOf<P extends At>(place: P, ...path: Path): P {
  return { ...place, pointer: place.pointer + pointerOf(path) };
}

/** What the author wrote for a part of the flow, right or wrong; undefined: nothing. */
export function written({ where }: LoadedFlow, ...part: Path): Json | undefined {
  const place = where(part);
  return place === null ? undefined : readPath(place.document.value, place.path);
}

/** The schema of a step's answer; true: any answer fits. */
export function answerSchema({ answer }: Pick<Step, "answer">): JsonSchema | true {
  return answer.kind === "object" && answer.schema.kind === "schema" ? answer.schema.schema : true;
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
  const { file, ref: unresolved } = sources.schema({ file: ref.file, schema: ref.schema });
  const documentOf = (name: string) => {
    const read = schemaFiles.get(name);
    return read?.kind === "read" ? read.document : null;
  };
  if (unresolved !== undefined) {
    const document = documentOf(unresolved.file);
    const at = document === null ? null : placeOfRef(document.value, unresolved.to);
    return document === null || at === null ? null : { document, path: at };
  }
  const place = placeInSchema(schemaFiles, { file, schema: ref.schema }, path);
  const document = place === null ? null : documentOf(place.file);
  return document === null ? null : { document, path: place!.path };
}

/** A part of a step's schema in the file it is written in, else the key of the step that names the schema. */
export function atSchema(loaded: Registered, id: StepId, ...path: Path): At {
  const place = schemaPlace(loaded, id, path) ?? schemaPlace(loaded, id, []);
  if (place === null) return atStep(loaded, id, "outputSchemaRef");
  return { document: place.document, pointer: pointerOf(place.path), steps: [id] };
}

/** Where a schema says which step it is for. One that is for another step of the flow is in the wrong place, and not wrong. */
export function atName(loaded: Registered, id: StepId, field: string, names: readonly string[]): At {
  const isForAnother = names.some((name) => loaded.steps.has(name));
  return isForAnother ? atStep(loaded, id, "outputSchemaRef") : atSchema(loaded, id, "properties", field);
}

/** The shortest way to a step, and on to where it would lead. Questions about steps are part of no way. */
export function witness(
  { reach, steps }: LoadedFlow,
  id: StepId,
  ...further: readonly StepId[]
): readonly StepId[] {
  const path = (reach?.pathTo(id) ?? []).filter((step) => steps.get(step)?.aside === undefined);
  return path.length === 0 ? [id, ...further] : [...path, ...further];
}

/** The fewest visits after which the verdict can end a run; Infinity: it cannot. */
export function visitsToVerdict({ flow, steps, reach }: LoadedFlow): number {
  const live = [...(reach?.steps ?? steps.keys())];
  const canCheck = checksEveryVisit(flow) || live.some((id) => steps.get(id)?.kind !== "work");
  return fewestVisits(flow.stop, canCheck);
}

/** Whether any step decides by a gate. */
export function isGated({ sources }: Registered): boolean {
  return [...sources.registry.steps.values()].some((step) => step.structuredGate !== undefined);
}
