/** What a script file may hold, as a table: for the JSON Schema that editors use. A test holds it against the reader. */
import { FAULTS } from "../src/backends/scripted/script.ts";
import { anything, list, number, object, text } from "../src/flow/shape.ts";

const REPLY = object("What the model says to one request: text, output, calls or error.", {
  step: text("The step that must be asking.", { filled: true }),
  saw: anything("What must occur in the request; re: begins a regular expression.", {
    types: ["string", "array"],
  }),
  unseen: anything("What must not occur in the request.", { types: ["string", "array"] }),
  text: text("Plain prose."),
  output: anything("The structured answer."),
  calls: list(
    "Tool calls, which are really made.",
    object("One call.", {
      name: text("The tool.", { required: true, filled: true }),
      input: anything("What it is given.", { types: ["object"] }),
      id: text("The call's id."),
    }),
  ),
  error: object("A failure of the model.", {
    kind: text("What kind of failure.", { required: true, enum: [...FAULTS] }),
    message: text("What it says."),
    status: number("The HTTP status."),
    retryAfterMs: number("How long to wait before trying again.", { min: 0 }),
  }),
});

export const SCRIPT = object("What a scripted model says, one reply for each response.", {
  replies: list("The replies, in order.", REPLY, { required: true }),
});
