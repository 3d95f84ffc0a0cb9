/** What steps_registry.json may hold with a `complete` intent: the same keys, other intents, fewer of them required. */
import { DEFAULTS } from "../agent/defaults.ts";
import {
  GATE_FIELDS,
  REGISTRY_FIELDS,
  STEP_FIELDS,
  type Intent,
  type RegistrySource,
} from "./registry-shape.ts";
import { flag, group, list, map, object, text, type Shape } from "../../flow/shape.ts";

const WORDS: readonly Intent[] = ["next", "repeat", "jump", "complete", "abort"];

const GATE = object("How the answer becomes an intent.", {
  ...GATE_FIELDS,
  allowedIntents: list(
    "The intents this step can give.",
    text("An intent.", { enum: WORDS, code: "SR-VALID-001" }),
    { required: true, filled: true, code: "SR-VALID-001" },
  ),
  intentSchemaRef: text("No effect."),
  intentField: text("The dotted path of the intent in the answer.", { default: DEFAULTS.intentField }),
  failFast: flag("No effect: a fallbackIntent is always used.", { default: false }),
  fallbackIntent: text("The intent used when the answer has no allowed one.", { enum: WORDS }),
  aliases: map("More aliases for intents.", text("An intent.", { enum: WORDS })),
});

const STEP = object("One step.", { ...STEP_FIELDS, structuredGate: GATE });

export const COMPLETE_REGISTRY: Shape<RegistrySource> = group(
  "The steps of an agent and the transitions between them.",
  {
    ...REGISTRY_FIELDS,
    agentId: text("The agent's name."),
    version: text("The version of this registry."),
    c1: text("First part of every prompt's path.", { default: DEFAULTS.c1, filled: true }),
    steps: map("The steps, by id.", STEP, { required: true, code: "SR-LOAD-001" }),
  },
);
