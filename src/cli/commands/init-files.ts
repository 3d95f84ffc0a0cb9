/** The agent that `lockstep init` writes: it plans a note, drafts it and closes. Path below .agent/NAME/ → text. */

/** `schemas`: where the schemas for editors are, from the agent's folder; null: nowhere in the project. */
export function initFiles(
  name: string,
  schemas: string | null = SCHEMAS,
): { readonly [path: string]: string } {
  return fill(TEMPLATES, name, schemas);
}

/** Where a package of the project has them. */
export const SCHEMAS = "../../node_modules/lockstep/schemas";

export function fill(
  templates: { readonly [path: string]: string },
  name: string,
  schemas: string | null,
): { readonly [path: string]: string } {
  const filled = Object.entries(templates).map(([path, text]) => {
    const lines = text.split("\n").filter((line) => schemas !== null || !line.includes(SCHEMAS));
    return [
      path,
      lines
        .join("\n")
        .replaceAll(SCHEMAS, schemas ?? "")
        .replaceAll("@NAME@", name),
    ] as const;
  });
  return Object.fromEntries(filled);
}

const AGENT = `{
  "$schema": "../../node_modules/lockstep/schemas/agent.schema.json",
  "version": "1.0.0",
  "name": "@NAME@",
  "displayName": "@NAME@",
  "description": "Writes a short note about a topic: plans it, drafts it, closes when it is good.",
  "parameters": {
    "topic": {
      "type": "string",
      "description": "What the note is about",
      "required": true,
      "cli": "--topic"
    }
  },
  "runner": {
    "flow": {
      "systemPromptPath": "prompts/system.md",
      "prompts": {
        "registry": "steps_registry.json",
        "strict": true
      }
    },
    "verdict": {
      "type": "detect:graph",
      "config": {
        "maxIterations": 12
      }
    },
    "boundaries": {
      "allowedTools": ["Read", "Glob", "Grep"],
      "permissionMode": "plan"
    },
    "integrations": {
      "github": {
        "enabled": false
      }
    }
  }
}
`;

const REGISTRY = `{
  "$schema": "../../node_modules/lockstep/schemas/steps_registry.schema.json",
  "agentId": "@NAME@",
  "version": "1.0.0",
  "c1": "steps",
  "pathTemplate": "{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md",
  "pathTemplateNoAdaptation": "{c1}/{c2}/{c3}/f_{edition}.md",
  "entryStepMapping": {
    "detect:graph": "initial.note"
  },
  "steps": {
    "initial.note": {
      "stepId": "initial.note",
      "name": "Plan the note",
      "stepKind": "work",
      "c2": "initial",
      "c3": "note",
      "edition": "default",
      "uvVariables": ["topic"],
      "usesStdin": false,
      "outputSchemaRef": {
        "file": "note.schema.json",
        "schema": "initial.note"
      },
      "structuredGate": {
        "allowedIntents": ["next", "repeat"],
        "intentSchemaRef": "#/properties/next_action/properties/action",
        "intentField": "next_action.action",
        "handoffFields": ["plan.angle", "plan.points"]
      },
      "transitions": {
        "next": { "target": "continuation.note" },
        "repeat": { "target": "initial.note" }
      }
    },
    "continuation.note": {
      "stepId": "continuation.note",
      "name": "Draft the note",
      "stepKind": "work",
      "c2": "continuation",
      "c3": "note",
      "edition": "default",
      "uvVariables": ["topic", "initial_note_angle", "initial_note_points"],
      "usesStdin": false,
      "inputs": {
        "initial_note_angle": { "from": "initial.note.angle", "required": true },
        "initial_note_points": { "from": "initial.note.points", "required": true }
      },
      "outputSchemaRef": {
        "file": "note.schema.json",
        "schema": "continuation.note"
      },
      "structuredGate": {
        "allowedIntents": ["next", "repeat", "handoff"],
        "intentSchemaRef": "#/properties/next_action/properties/action",
        "intentField": "next_action.action",
        "handoffFields": ["draft.text"]
      },
      "transitions": {
        "next": { "target": "continuation.note" },
        "repeat": { "target": "continuation.note" },
        "handoff": { "target": "closure.note" }
      }
    },
    "closure.note": {
      "stepId": "closure.note",
      "name": "Read it once more and close",
      "stepKind": "closure",
      "c2": "closure",
      "c3": "note",
      "edition": "default",
      "uvVariables": ["topic", "continuation_note_text"],
      "usesStdin": false,
      "inputs": {
        "continuation_note_text": { "from": "continuation.note.text", "required": true }
      },
      "outputSchemaRef": {
        "file": "note.schema.json",
        "schema": "closure.note"
      },
      "structuredGate": {
        "allowedIntents": ["closing", "repeat"],
        "intentSchemaRef": "#/properties/next_action/properties/action",
        "intentField": "next_action.action",
        "handoffFields": ["note"]
      },
      "transitions": {
        "closing": { "target": null },
        "repeat": { "target": "closure.note" }
      }
    }
  }
}
`;

const SCHEMA = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "definitions": {
    "initial.note": {
      "type": "object",
      "required": ["stepId", "plan", "next_action"],
      "properties": {
        "stepId": { "const": "initial.note" },
        "plan": {
          "type": "object",
          "required": ["angle", "points"],
          "properties": {
            "angle": { "type": "string", "minLength": 1 },
            "points": { "type": "array", "items": { "type": "string" }, "minItems": 1 }
          }
        },
        "next_action": {
          "type": "object",
          "required": ["action"],
          "properties": {
            "action": { "type": "string", "enum": ["next", "repeat"] },
            "reason": { "type": "string" }
          }
        }
      }
    },
    "continuation.note": {
      "type": "object",
      "required": ["stepId", "draft", "next_action"],
      "properties": {
        "stepId": { "const": "continuation.note" },
        "draft": {
          "type": "object",
          "required": ["text"],
          "properties": {
            "text": { "type": "string", "minLength": 1 }
          }
        },
        "next_action": {
          "type": "object",
          "required": ["action"],
          "properties": {
            "action": { "type": "string", "enum": ["next", "repeat", "handoff"] },
            "reason": { "type": "string" }
          }
        }
      }
    },
    "closure.note": {
      "type": "object",
      "required": ["stepId", "note", "next_action"],
      "properties": {
        "stepId": { "const": "closure.note" },
        "note": { "type": "string", "minLength": 1 },
        "next_action": {
          "type": "object",
          "required": ["action"],
          "properties": {
            "action": { "type": "string", "enum": ["closing", "repeat"] },
            "reason": { "type": "string" }
          }
        }
      }
    }
  }
}
`;

const SYSTEM = `You are {uv-agent_name}. You write short, exact notes.

{uv-verdict_criteria}
`;

const INITIAL = `Plan a note about: {uv-topic}

Choose one angle and the points that carry it. Decide \`next\` when the plan is good, \`repeat\` to plan again.
`;

const CONTINUATION = `Draft the note about: {uv-topic}

- Angle: {uv-initial_note_angle}
- Points: {uv-initial_note_points}

Decide \`next\` to draft on, \`repeat\` to begin the draft again, \`handoff\` when it can be read over.
`;

const CLOSURE = `Read the draft about "{uv-topic}" once more:

{uv-continuation_note_text}

Give the final wording as \`note\`. Decide \`closing\` when it is good, \`repeat\` to read it again.
`;

const SCRIPT = `# yaml-language-server: $schema=../../node_modules/lockstep/schemas/script.schema.json
# What a model would answer, one reply for each question. With it the agent runs without a key:
#   lockstep run @NAME@ --topic "tides" --script .agent/@NAME@/script.yaml
# \`saw\` must occur in what the model is sent, so this is a test of the prompts too.
replies:
  - step: initial.note
    saw: ["Plan a note about"]
    output:
      stepId: initial.note
      plan:
        angle: Why it happens twice a day
        points: [The moon pulls, The earth turns]
      next_action: { action: next, reason: The plan is clear. }

  - step: continuation.note
    saw: ["Why it happens twice a day"]
    output:
      stepId: continuation.note
      draft:
        text: The moon pulls on the near side and the far side alike, and the earth turns below both.
      next_action: { action: handoff, reason: The draft says it. }

  - step: closure.note
    saw: ["the earth turns below both"]
    output:
      stepId: closure.note
      note: Two bulges, one turning earth, two tides a day.
      next_action: { action: closing, reason: The note is short and true. }
`;

const TEMPLATES: { readonly [path: string]: string } = {
  "agent.json": AGENT,
  "steps_registry.json": REGISTRY,
  "schemas/note.schema.json": SCHEMA,
  "prompts/system.md": SYSTEM,
  "prompts/steps/initial/note/f_default.md": INITIAL,
  "prompts/steps/continuation/note/f_default.md": CONTINUATION,
  "prompts/steps/closure/note/f_default.md": CLOSURE,
  "script.yaml": SCRIPT,
};
