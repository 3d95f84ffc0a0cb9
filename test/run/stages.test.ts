/** Document 004 by the public door: real files in a folder, `run` and `resume`, one row for each row of its tables. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prove, type Row } from "./stage-project.ts";
import { FIELDS, NUMBERS, PLACEHOLDERS } from "./stage-rows/fields.ts";
import { BATCHES, BRANCHES, CAPS, CHANNEL } from "./stage-rows/completion.ts";
import { RELATIONS, SIBLINGS } from "./stage-rows/siblings.ts";
import { ENDS, GATES, NEXT, RETRIES } from "./stage-rows/moves.ts";

const TABLES: { readonly [title: string]: readonly Row[] } = {
  "fields of a stage file": [...FIELDS, ...NUMBERS],
  "template placeholders": PLACEHOLDERS,
  "completion channel": CHANNEL,
  "how Act ends": BRANCHES,
  "batches with the completion tool": BATCHES,
  "the cap": CAPS,
  "other surfaces": RELATIONS,
  "parallel siblings": SIBLINGS,
  "gates and policies": GATES,
  retries: RETRIES,
  "forms of next": NEXT,
  "exit codes": ENDS,
};

/** What every table and list of the document names, by the beginning of a row's name. */
const NAMED: readonly string[] = [
  "field id",
  "field name",
  "field allowedTools",
  "field completionTool",
  "field completionSchema",
  "field retryPolicy",
  "field turnCap",
  "gate, resolutionPolicy",
  "field description",
  "field inputsSchema",
  "field tags",
  "field of one's own",
  "placeholder {{ctx.<field>}}",
  "placeholder {{ctx.upstream[i].*}}",
  "placeholder {{ctx.workflowRunId}}",
  "placeholder {{stage.id}}",
  "placeholder {{ctx.attempts}}",
  "placeholder {{ctx.host}}",
  "placeholder {{env.FOO}}",
  "placeholder ${ctx.<field>}",
  "channel registration",
  "channel reserved name",
  "channel visibility",
  "channel approval",
  "channel scope",
  "channel persistence",
  "channel audit",
  "branch success",
  "branch parse failure",
  "branch plain text",
  "branch other tool",
  "branch cap",
  "batch of one, the completion",
  "batch of the completion and others",
  "batch of two completions",
  "batch without a completion",
  "relation tools",
  "relation providers",
  "siblings: the join runs when all",
  "siblings: one fails",
  "siblings: a recover stage",
  "siblings: a join that is not listed",
  "exit 3: a model that cannot call tools",
];

test("every row of the document's tables has a row here", () => {
  const names = Object.values(TABLES).flatMap((rows) => rows.map(({ name }) => name));
  assert.deepEqual(
    NAMED.filter((named) => !names.some((name) => name.startsWith(named))),
    [],
  );
  assert.equal(new Set(names).size, names.length, "no two rows have the same name");
});

for (const [title, rows] of Object.entries(TABLES)) {
  for (const row of rows) {
    test(`${title}: ${row.name}`, async () => await prove(row));
  }
}
