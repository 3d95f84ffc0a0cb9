/** The machine that `lockstep init --stages` writes: it plans a note, drafts it, and drafts again until a review approves. Path below .agent/NAME/ → text. */
import { fill, SCHEMAS } from "./init-files.ts";

export function initStages(
  name: string,
  schemas: string | null = SCHEMAS,
): { readonly [path: string]: string } {
  return fill(TEMPLATES, name, schemas);
}

const MACHINE = `# yaml-language-server: $schema=../../node_modules/lockstep/schemas/machine.schema.json
id: @NAME@
entry: plan
# What a run is started with: each property is a flag and a field of ctx.
inputs:
  type: object
  required: [topic]
  properties:
    topic: { type: string, description: What the note is about }
limits: { visits: 12 }
`;

const PLAN = `---
id: plan
name: Plan
description: Chooses the points that the note is made of.
allowedTools: [Read, Glob, Grep]
completionTool: submit_plan
completionSchema:
  type: object
  required: [points, notes]
  properties:
    points: { type: array, minItems: 1, items: { type: string } }
    notes: { type: string }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 6
resolutionPolicy: fail
# What later stages read as {{ctx.points}}, whichever stage led to them.
share: { points: parsed.points }
next: draft
---

You plan a short note about: {{ctx.topic}}

When you are done, call \`submit_plan\` with its points, and with notes on what to take care of.
`;

const DRAFT = `---
id: draft
name: Draft
description: Writes the note.
allowedTools: []
completionTool: submit_draft
completionSchema:
  type: object
  required: [text]
  properties:
    text: { type: string, minLength: 20 }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 4
resolutionPolicy: fail
next: review
---

You write a note about {{ctx.topic}} in two sentences. Its points: {{ctx.points}}

Take care of this: {{ctx.upstream[0].parsed.notes}}
`;

const REVIEW = `---
id: review
name: Review
description: Approves the note, or says what is missing.
allowedTools: []
completionTool: submit_review
completionSchema:
  type: object
  required: [approved, notes]
  properties:
    approved: { type: boolean }
    notes: { type: string }
retryPolicy: { maxAttempts: 2, backoff: none }
turnCap: 4
resolutionPolicy: fail
# The value decides and not the model's word for where to go: there are these two ways and no other.
next: { switch: parsed.approved, cases: { "true": end, default: draft } }
---

You read a note about {{ctx.topic}} before it is printed:

{{ctx.upstream[0].parsed.text}}

Approve it, or say in \`notes\` what is still missing.
`;

const SCRIPT = `# yaml-language-server: $schema=../../node_modules/lockstep/schemas/script.schema.json
# What a model would answer, one reply for each question. With it the machine runs without a key:
#   lockstep run @NAME@ --topic "tides" --script .agent/@NAME@/script.yaml
# \`output\` is a call of the stage's completion tool; \`saw\` must occur in what the model is sent.
replies:
  - step: plan
    saw: ["a short note about"]
    output: { points: [The moon pulls, The earth turns], notes: Say why there are two a day. }

  # Too short for its schema: the model is told so as the result of its call.
  - step: draft
    saw: ["Say why there are two a day."]
    output: { text: The moon does it. }
  - step: draft
    saw: ["must NOT have fewer than 20 characters"]
    output: { text: The moon pulls the sea into bulges. The earth turns below them. }

  - step: review
    saw: ["The earth turns below them."]
    output: { approved: false, notes: It does not say that there are two bulges. }

  - step: draft
    saw: ["It does not say that there are two bulges."]
    output: { text: The moon pulls the sea into two bulges. The earth turns below both once a day. }

  - step: review
    saw: ["two bulges"]
    output: { approved: true, notes: Short and true. }
`;

const TEMPLATES: { readonly [path: string]: string } = {
  "machine.yaml": MACHINE,
  "stages/1-plan.md": PLAN,
  "stages/2-draft.md": DRAFT,
  "stages/3-review.md": REVIEW,
  "script.yaml": SCRIPT,
};
