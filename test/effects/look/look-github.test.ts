/** Whether an issue or a project is as a stop rule wants it: looked up on the stand-in of GitHub. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { GithubOutcome, GithubClient } from "../../../src/effects/github/github.ts";
import { createWatch } from "../../../src/effects/look/look.ts";
import type { Json, JsonObject } from "../../../src/flow/json.ts";
import { visit } from "../../github/client.ts";
import { openStandIn, type StandIn } from "../../github/stand-in.ts";

async function look(
  kind: "github-issue" | "github-project",
  want: Json,
  args: JsonObject,
  github: () => Promise<GithubOutcome<GithubClient>>,
) {
  const warnings: string[] = [];
  const watch = createWatch({
    agent: "a",
    root: "/",
    cwd: "/",
    env: {},
    github,
    onWarning: (text) => warnings.push(text),
  });
  const glance = { run: "r", step: "s", iteration: 1, args, said: "", payload: {} };
  const { signal } = new AbortController();
  return { ...(await watch.look({ kind: "state", resource: { kind, want } }, glance, signal)), warnings };
}

type Row = readonly [want: Json, args: JsonObject, met: boolean, says: RegExp];
const ISSUES: readonly Row[] = [
  ["closed", { issue: 1 }, false, /issue 1 is open, with the labels bug, in-progress/],
  ["open", { issue: 1 }, true, /issue 1 is open/],
  ["closed", { issue: 2 }, true, /issue 2 is closed \(not_planned\)/],
  ["CLOSED", { issue: "2" }, true, /issue 2 is closed/],
  ["closed", { issue: "#2" }, true, /issue 2 is closed/],
  ["not planned", { issue: 2 }, true, /not_planned/],
  ["completed", { issue: 2 }, false, /not_planned/],
  [{ state: "closed" }, { issue: 2 }, true, /closed/],
  [{ state: "closed", state_reason: "completed" }, { issue: 2 }, false, /not_planned/],
  [{ stateReason: "not_planned" }, { issue: 2 }, true, /not_planned/],
  [{ labels: ["bug"] }, { issue: 1 }, true, /bug/],
  [{ labels: "Bug" }, { issue: 1 }, true, /bug/],
  [{ labels: ["bug", "done"] }, { issue: 1 }, false, /bug/],
  [{ labels: [], state: "open", assignees: ["bob"] }, { issue: 1 }, true, /open/],
  [{ assignees: ["eve"] }, { issue: 1 }, false, /open/],
  [{ mood: "good" }, { issue: 1 }, false, /open/],
  [{}, { issue: 1 }, true, /open/],
  ["closed", { issue: 99 }, false, /There is no issue 99 in octo\/demo, or the token from GH_TOKEN/],
  ["closed", {}, false, /there is no number in the argument issue/],
  ["closed", { issue: "1/comments" }, false, /no number/],
  ["closed", { issue: -1 }, false, /no number/],
];
const PROJECTS: readonly Row[] = [
  ["Done", { project: 1, issue: 2 }, true, /issue 2 on project 1 is closed, Status: Done/],
  ["done", { project: 1, issue: 1 }, false, /issue 1 on project 1 is open, Status: In Progress/],
  ["closed", { project: 1, issue: 2 }, true, /closed/],
  [{ status: "Done" }, { project: 1, issue: 2 }, true, /Status: Done/],
  [{ Status: "Done", state: "open" }, { project: 1, issue: 2 }, false, /closed/],
  [{ points: 3 }, { project: 1, issue: 2 }, true, /Points: 3/],
  [{ nothing: "x" }, { project: 1, issue: 2 }, false, /Status/],
  ["Done", { project: 2, issue: 1 }, false, /issue 1 is not on project 2/],
  ["Done", { project: 1, issue: 99 }, false, /There is no issue 99/],
  ["Done", { project: 1 }, false, /1 of 2 items of project 1 are not as wanted/],
  ["Done", { project: 2 }, true, /all 1 items of project 2 are as wanted/],
  ["Done", { project: 3 }, false, /0 of 0 items/],
  ["Done", { project: 4 }, true, /all 1100 items of project 4 are as wanted/],
  ["Done", { project: 5 }, false, /project 5 has more than the 5000 items that were looked at, which are as/],
  ["Todo", { project: 5 }, false, /5000 of 5000 items of project 5 are not as wanted/],
  ["closed", { project: 1 }, false, /project 1 is open/],
  ["closed", { project: 3 }, true, /project 3 is closed/],
  ["open", { project: 1 }, true, /project 1 is open/],
  ["closed", { project: 99 }, false, /There is no project 99/],
  ["closed", { issue: 1 }, false, /no number in the argument project/],
];

describe("on GitHub", () => {
  let stand: StandIn;
  let github: GithubClient;
  before(async () => {
    stand = await openStandIn();
    const { world } = stand;
    world.addIssue({ labels: ["bug", "in-progress"], assignees: ["bob"] });
    world.addIssue({ state: "closed", stateReason: "not_planned" });
    world.addProject({
      items: [
        { id: "A", type: "ISSUE", number: 1, fields: { Status: "In Progress" } },
        { id: "B", type: "ISSUE", number: 2, fields: { Status: "Done", Points: 3 } },
      ],
    });
    world.addProject({ items: [{ id: "C", type: "ISSUE", number: 2, fields: { Status: "Done" } }] });
    world.addProject({ closed: true });
    for (const count of [1100, 5001]) {
      const items = Array.from({ length: count }, (_, index) => ({
        id: `D${index}`,
        type: "DRAFT_ISSUE" as const,
        fields: { Status: "Done" },
      }));
      world.addProject({ items });
    }
    ({ github } = await visit(stand));
  });
  after(() => stand.close());

  for (const [kind, rows] of [
    ["github-issue", ISSUES],
    ["github-project", PROJECTS],
  ] as const) {
    for (const [want, args, met, says] of rows) {
      test(`${kind} ${JSON.stringify(want)} ${JSON.stringify(args)}`, async () => {
        const sight = await look(kind, want, args, async () => ({ ok: true, value: github }));
        assert.equal(sight.met, met, sight.what);
        assert.match(sight.what, says);
      });
    }
  }

  test("looking again at what has not changed costs nothing", async () => {
    const { github: fresh } = await visit(stand);
    stand.log.length = 0;
    for (let index = 0; index < 3; index += 1)
      await look("github-issue", "closed", { issue: 1 }, async () => ({ ok: true, value: fresh }));
    assert.deepEqual(
      stand.log.map(({ status }) => status),
      [200, 304, 304],
    );
  });

  test("without a token it is not in the target state, and there is a warning", async () => {
    const none = async () =>
      ({ ok: false, kind: "no-token", why: "There is no token: set GH_TOKEN." }) as const;
    const sight = await look("github-issue", "open", { issue: 1 }, none);
    assert.equal(sight.met, false);
    assert.match(sight.what, /issue on GitHub was not looked at: There is no token: set GH_TOKEN\./);
    assert.deepEqual(sight.warnings, [sight.what]);
  });
});
