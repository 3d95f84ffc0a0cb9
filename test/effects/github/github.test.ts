/** Speaking to GitHub: a real server on loopback, whose answers fit GitHub's own description. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { describe as describeGitHub } from "../../../scripts/github-description.ts";
import { type GithubClient, type GithubOutcome } from "../../../src/effects/github/github.ts";
import { ITEMS, ITEMS_OF_ISSUE, PROJECT, PROJECTS } from "../../../src/effects/github/github-projects.ts";
import { parseRepository } from "../../../src/effects/github/github-where.ts";
import { visit } from "../../github/client.ts";
import { description } from "../../github/described.ts";
import { needs } from "../../needs.ts";
import { openStandIn, type Fault, type StandIn, type When } from "../../github/stand-in.ts";
import { until } from "../../until.ts";

let stand: StandIn;

/** Every test has a stand-in of its own. */
function withStandIn(name: string, tests: () => void): void {
  describe(name, () => {
    beforeEach(async () => {
      stand = await openStandIn();
    });
    afterEach(() => stand.close());
    tests();
  });
}

async function got<T>(outcome: Promise<GithubOutcome<T>>): Promise<T> {
  const settled = await outcome;
  assert.ok(settled.ok, settled.ok ? "" : `${settled.kind}: ${settled.why}`);
  return settled.value;
}

withStandIn("reading", () => {
  test("an issue and its comments", async () => {
    const { world } = stand;
    const issue = world.addIssue({ title: "Broken", body: "It is.", labels: ["bug"], assignees: ["bob"] });
    world.addComment(issue, "Me too", "eve");
    const { github } = await visit(stand);
    const seen = await got(github.issue(issue.number));
    assert.equal(seen.title, "Broken");
    assert.equal(seen.body, "It is.");
    assert.equal(seen.state, "open");
    assert.equal(seen.author, "ann");
    assert.deepEqual([seen.labels, seen.assignees, seen.comments], [["bug"], ["bob"], 1]);
    const { items, more } = await got(github.comments(issue.number));
    assert.deepEqual(
      items.map(({ author, body }) => [author, body]),
      [["eve", "Me too"]],
    );
    assert.equal(more, false);
  });

  test("a list of issues is without pull requests, by labels and state, up to a limit", async () => {
    const { world } = stand;
    for (let index = 0; index < 7; index += 1) world.addIssue({ labels: index % 2 === 0 ? ["even"] : [] });
    world.addPull();
    world.addIssue({ state: "closed" });
    const { github } = await visit(stand);
    const numbers = async (filter: Parameters<GithubClient["issues"]>[0]) => {
      const { items, more } = await got(github.issues(filter));
      return [items.map(({ number }) => number), more];
    };
    assert.deepEqual(await numbers({}), [[7, 6, 5, 4, 3, 2, 1], false]);
    assert.deepEqual(await numbers({ state: "closed" }), [[9], false]);
    assert.deepEqual(await numbers({ labels: ["even"] }), [[7, 5, 3, 1], false]);
    assert.deepEqual(await numbers({ state: "all", limit: 3 }), [[9, 7, 6], true]);
    assert.deepEqual(await numbers({ limit: 2 }), [[7, 6], true]);
    assert.deepEqual(await numbers({ limit: 7 }), [[7, 6, 5, 4, 3, 2, 1], false]);
  });

  /** `looks`: the pages that are asked for, in order. */
  const COMMENTS: readonly (readonly [
    count: number,
    filter: { readonly limit?: number; readonly sought?: number },
    hidesLast: boolean,
    seen: readonly [first: number, last: number, more: boolean],
    looks: string,
  ])[] = [
    [1, {}, false, [0, 0, false], "1"],
    [100, {}, false, [0, 99, false], "1"],
    [101, {}, false, [1, 100, true], "1 2 1"],
    [250, { limit: 1000 }, false, [0, 249, false], "1 3 2 1"],
    [250, { limit: 250 }, false, [0, 249, false], "1 3 2 1"],
    [250, { limit: 30 }, false, [220, 249, true], "1 3"],
    [250, { limit: 1000, sought: 249 }, false, [200, 249, true], "1 3"],
    [250, { limit: 1000, sought: 150 }, false, [100, 249, true], "1 3 2"],
    [250, { limit: 1000, sought: 0 }, false, [0, 249, false], "1 3 2 1"],
    [250, { limit: 1000 }, true, [0, 249, false], "1 2 3 2 1"],
    [250, { limit: 60 }, true, [190, 249, true], "1 2 3 2"],
  ];
  for (const [count, { limit, sought }, hidesLast, [first, last, more], looks] of COMMENTS) {
    const which = `${limit ?? "usual"}, ${sought ?? "none"} sought`;
    test(`the latest of ${count} comments: ${which}${hidesLast ? ", without a last link" : ""}`, async () => {
      const issue = stand.world.addIssue();
      for (let index = 0; index < count; index += 1) stand.world.addComment(issue, `number ${index}`);
      stand.hidesLast = hidesLast;
      const { github } = await visit(stand);
      const filter = {
        ...(limit !== undefined && { limit }),
        ...(sought !== undefined && {
          until: ({ body }: { readonly body: string }) => body === `number ${sought}`,
        }),
      };
      const seen = await got(github.comments(issue.number, filter));
      assert.deepEqual(
        seen.items.map(({ body }) => body),
        Array.from({ length: last - first + 1 }, (_, index) => `number ${first + index}`),
      );
      assert.equal(seen.more, more);
      assert.equal(stand.log.map(({ query }) => query["page"] ?? "1").join(" "), looks);
    });
  }

  test("a comment that moves to another page while they are read is not missed", async () => {
    const issue = stand.world.addIssue();
    for (let index = 0; index < 250; index += 1) stand.world.addComment(issue, `number ${index}`);
    stand.onRequest = ({ query }) => void (query["page"] === "3" && issue.comments.splice(0, 1));
    const { items } = await got((await visit(stand)).github.comments(issue.number, { limit: 1000 }));
    const bodies = items.map(({ body }) => body);
    assert.deepEqual([bodies.length, bodies[0], new Set(bodies).size], [249, "number 1", 249]);
  });

  test("issues from the oldest on, and those after a number", async () => {
    for (let index = 0; index < 130; index += 1)
      if (index % 10 === 0) stand.world.addPull();
      else stand.world.addIssue();
    const { github } = await visit(stand);
    const numbers = async (filter: Parameters<GithubClient["issues"]>[0]) => {
      stand.log.length = 0;
      const { items, more } = await got(github.issues({ limit: 1000, ...filter }));
      return [items.length, items[0]?.number, items.at(-1)?.number, more, stand.log.length];
    };
    assert.deepEqual(await numbers({}), [117, 130, 2, false, 2]);
    assert.deepEqual(await numbers({ after: 40 }), [81, 130, 42, false, 1]);
    assert.deepEqual(await numbers({ after: 130 }), [0, undefined, undefined, false, 1]);
    assert.deepEqual(await numbers({ after: 20 }), [99, 130, 22, false, 2]);
    assert.deepEqual(await numbers({ limit: 50, after: 20 }), [50, 130, 76, true, 2]);
    assert.deepEqual(await numbers({ order: "oldest first" }), [117, 2, 130, false, 2]);
    assert.deepEqual(await numbers({ order: "oldest first", after: 128 }), [2, 129, 130, false, 2]);
    assert.equal(await got(github.newestNumber()), 130);
    stand.world.addPull({ state: "closed" });
    assert.equal(await got(github.newestNumber()), 131);
  });

  test("the newest number where there is nothing", async () => {
    assert.equal(await got((await visit(stand)).github.newestNumber()), 0);
  });

  test("an issue that is on more projects than one page holds", async () => {
    const issue = stand.world.addIssue();
    const item = { type: "ISSUE" as const, number: issue.number };
    for (let index = 1; index <= 130; index += 1)
      stand.world.addProject({ items: [{ ...item, id: `I${index}`, fields: { Status: `s${index}` } }] });
    const { github } = await visit(stand);
    for (const [project, status] of [
      [1, "s1"],
      [51, "s51"],
      [130, "s130"],
      [131, undefined],
    ] as const)
      assert.equal((await got(github.projectItem(project, issue.number)))?.fields["Status"], status);
  });

  test("pull requests, their changes and their checks", async () => {
    const pull = stand.world.addPull({
      title: "Mend it",
      head: "mend",
      diff: "diff --git a/x b/x\n",
      checks: [
        { id: 1, name: "build", status: "completed", conclusion: "success" },
        { id: 2, name: "lint", status: "in_progress", conclusion: null },
        { id: 3, name: "types", status: "completed", conclusion: "timed_out" },
      ],
      statuses: [{ context: "ci/old", state: "failure", description: "broke" }],
    });
    stand.world.addPull({ head: "other", state: "closed", mergedAt: "2026-01-02T00:00:00Z" });
    const { github } = await visit(stand);
    const seen = await got(github.pull(pull.number));
    assert.deepEqual([seen.title, seen.head, seen.base, seen.state], ["Mend it", "mend", "main", "open"]);
    assert.equal(await got(github.diff(pull.number)), "diff --git a/x b/x\n");
    assert.deepEqual(
      (await got(github.checks(pull.number))).items.map(({ name, state }) => `${name} ${state}`),
      ["build passed", "lint pending", "types failed", "ci/old failed"],
    );
    assert.equal((await got(github.pulls())).items.length, 1);
    assert.deepEqual(
      (await got(github.pullsOf("other"))).map(({ number, state }) => [number, state]),
      [[2, "merged"]],
    );
    assert.deepEqual(await got(github.pullsOf("none")), []);
  });

  test("projects and their items", async () => {
    const { world } = stand;
    const issue = world.addIssue({ title: "One", state: "closed" });
    const pull = world.addPull({ title: "Two" });
    const many = Array.from({ length: 120 }, (_, index) => ({
      id: `D${index}`,
      type: "DRAFT_ISSUE" as const,
      title: `draft ${index}`,
    }));
    const project = world.addProject({
      title: "Plan",
      items: [
        { id: "A", type: "ISSUE", number: issue.number, fields: { Status: "Done", Points: 3 } },
        { id: "B", type: "PULL_REQUEST", number: pull.number },
        { id: "C", type: "REDACTED" },
        { id: "Z", type: "DRAFT_ISSUE", isArchived: true },
        ...many,
      ],
    });
    const { github } = await visit(stand);
    assert.deepEqual(
      (await got(github.projects())).items.map(({ title }) => title),
      ["Plan"],
    );
    assert.equal((await got(github.project(project.number))).title, "Plan");
    const { items, more } = await got(github.projectItems(project.number, 200));
    assert.deepEqual([items.length, more], [123, false]);
    assert.deepEqual(items[0]?.fields, { Status: "Done", Points: "3" });
    assert.deepEqual(
      items.slice(0, 4).map(({ kind, number, state, title }) => [kind, number, state, title]),
      [
        ["issue", 1, "closed", "One"],
        ["pull request", 2, "open", "Two"],
        ["unknown", 0, "", ""],
        ["draft", 0, "", "draft 0"],
      ],
    );
    assert.equal((await got(github.projectItems(project.number, 5))).more, true);
    const none = await github.project(99);
    assert.equal(none.ok ? "" : none.kind, "not-found");
  });

  test("an enterprise host has its queries beside its interface", async () => {
    const issue = stand.world.addIssue();
    stand.world.addProject();
    const env = { ...stand.env, GITHUB_API_URL: `${stand.url}/api/v3/`, GH_REPO: "ghe.corp/octo/demo" };
    const { github } = await visit(stand, { env });
    assert.equal(github.host, "ghe.corp");
    assert.equal((await got(github.issue(issue.number))).number, issue.number);
    assert.equal((await got(github.projects())).items.length, 1);
  });

  test("what has not changed is not sent again", async () => {
    const issue = stand.world.addIssue();
    const { github } = await visit(stand);
    for (let index = 0; index < 3; index += 1) await got(github.issue(issue.number));
    issue.state = "closed";
    assert.equal((await got(github.issue(issue.number))).state, "closed");
    assert.deepEqual(
      stand.log.map(({ status }) => status),
      [200, 304, 304, 200],
    );
  });
});

withStandIn("writing", () => {
  test("labels, comments and closing", async () => {
    const issue = stand.world.addIssue({ labels: ["a/b c"] });
    const { github, pauses } = await visit(stand);
    const { number } = issue;
    assert.deepEqual(await got(github.addLabels(number, ["done"])), ["a/b c", "done"]);
    assert.equal(await got(github.removeLabel(number, "a/b c")), true);
    assert.equal(await got(github.removeLabel(number, "a/b c")), false);
    assert.equal((await got(github.createComment(number, "Hello"))).author, stand.world.me);
    assert.deepEqual(
      [(await got(github.closeIssue(number))).state, issue.stateReason],
      ["closed", "completed"],
    );
    assert.deepEqual(issue.labels, ["done"]);
    assert.deepEqual(pauses, [1000, 1000, 1000, 1000]);
    const none = await github.removeLabel(99, "x");
    assert.equal(none.ok ? "" : none.kind, "not-found");
  });

  test("an issue and a pull request", async () => {
    stand.world.branches.add("mend");
    const { github } = await visit(stand);
    const issue = await got(
      github.createIssue({ title: "New", body: "b", labels: ["l"], assignees: ["bob"] }),
    );
    assert.deepEqual([issue.title, issue.labels, issue.assignees], ["New", ["l"], ["bob"]]);
    const pull = await got(
      github.createPull({ title: "P", body: "b", head: "mend", base: "main", draft: true }),
    );
    assert.deepEqual([pull.head, pull.base, pull.draft], ["mend", "main", true]);
    const again = await github.createPull({ title: "P", body: "b", head: "mend", base: "main" });
    assert.ok(!again.ok && again.kind === "invalid");
    assert.match(again.why, /A pull request already exists for octo:mend/);
    const long = await github.createComment(issue.number, "x".repeat(65_536 + 1));
    assert.ok(!long.ok && long.kind === "invalid" && /too long/.test(long.why));
  });

  test("writes are made one after the other", async () => {
    const issue = stand.world.addIssue();
    const { github, pauses } = await visit(stand);
    await Promise.all(["a", "b", "c"].map((body) => github.createComment(issue.number, body)));
    assert.deepEqual(
      issue.comments.map(({ body }) => body),
      ["a", "b", "c"],
    );
    assert.deepEqual(pauses, [1000, 1000]);
  });
});

const LIMIT_BODY = { message: "You have exceeded a secondary rate limit. Please wait." };
const status = (code: number, headers = {}, body?: object): Fault => ({
  kind: "status",
  status: code,
  headers,
  ...(body === undefined ? {} : { body: body as { message: string } }),
});

type Row = readonly [
  name: string,
  fault: Fault,
  when: When,
  /** What a read and what a write become; how many requests each takes; the pauses of the read. */
  read: string,
  reads: number,
  write: string,
  writes: number,
  pauses: readonly number[],
];
const RESET = String(Date.UTC(2026, 0, 1) / 1000 + 30);
const FAULTS: readonly Row[] = [
  ["401", status(401), {}, "unauthorised", 1, "unauthorised", 1, []],
  ["403, not permitted", status(403), {}, "forbidden", 1, "forbidden", 1, []],
  ["403, secondary limit", status(403, {}, LIMIT_BODY), {}, "limited", 3, "limited", 3, [60_000, 60_000]],
  ["403, once limited", status(403, {}, LIMIT_BODY), { times: 1 }, "ok", 2, "ok", 2, [60_000]],
  ["404", status(404), {}, "not-found", 1, "not-found", 1, []],
  ["409", status(409), {}, "conflict", 1, "conflict", 1, []],
  ["410", status(410), {}, "gone", 1, "gone", 1, []],
  ["301 without a way", status(301), {}, "gone", 1, "gone", 1, []],
  ["301 elsewhere", status(301, { location: "http://localhost:1/" }), {}, "gone", 1, "gone", 1, []],
  ["422", status(422), {}, "invalid", 1, "invalid", 1, []],
  ["429, seconds", status(429, { "retry-after": "5" }), { times: 1 }, "ok", 2, "ok", 2, [5000]],
  [
    "429, a date",
    status(429, { "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT" }),
    { times: 1 },
    "ok",
    2,
    "ok",
    2,
    [9000],
  ],
  ["429, absurd", status(429, { "retry-after": "soon" }), { times: 1 }, "ok", 2, "ok", 2, [60_000]],
  ["429, too long", status(429, { "retry-after": "9999999999" }), {}, "limited", 1, "limited", 1, []],
  ["429, untold", status(429), { times: 1 }, "ok", 2, "ok", 2, [60_000]],
  [
    "403, nothing left",
    status(403, { "x-ratelimit-remaining": "0", "x-ratelimit-reset": RESET }),
    { times: 1 },
    "ok",
    2,
    "ok",
    2,
    [30_000],
  ],
  ["500", status(500), {}, "server", 4, "server", 1, [1000, 2000, 4000]],
  ["502 once", status(502), { times: 1 }, "ok", 2, "server", 1, [1000]],
  ["503", status(503), {}, "server", 4, "server", 1, [1000, 2000, 4000]],
  ["dropped", { kind: "drop" }, {}, "network", 4, "network", 1, [1000, 2000, 4000]],
  ["dropped afterwards", { kind: "drop", after: true }, {}, "network", 4, "network", 1, [1000, 2000, 4000]],
  ["no answer", { kind: "hang" }, {}, "timeout", 2, "timeout", 1, [1000]],
  ["no answer afterwards", { kind: "hang", after: true }, {}, "timeout", 2, "timeout", 1, [1000]],
  ["broken off", { kind: "truncate", after: true }, {}, "network", 4, "network", 1, [1000, 2000, 4000]],
  ["half of the JSON", { kind: "no-json" }, {}, "unreadable", 4, "unreadable", 1, [1000, 2000, 4000]],
];

withStandIn("faults", () => {
  for (const [name, fault, when, read, reads, write, writes, waits] of FAULTS) {
    test(name, async () => {
      const issue = stand.world.addIssue();
      const patience = { requestMs: fault.kind === "hang" ? 50 : 60_000 };
      const { github, pauses } = await visit(stand, { patience });
      stand.fault(fault, { ...when, method: "GET" });
      stand.fault(fault, { ...when, method: "POST" });
      const one = await github.issue(issue.number);
      assert.equal(one.ok ? "ok" : one.kind, read);
      assert.deepEqual(pauses, waits);
      assert.equal(stand.log.length, reads);
      const other = await github.createComment(issue.number, "x");
      assert.equal(other.ok ? "ok" : other.kind, write);
      assert.equal(stand.log.length - reads, writes);
      const wasApplied = other.ok || (fault.kind !== "status" && fault.after === true);
      assert.equal(issue.comments.length, wasApplied ? 1 : 0);
      for (const outcome of [one, other]) {
        if (outcome.ok) continue;
        assert.match(outcome.why, /^[A-Z].*: .+\.$/);
        assert.ok(!outcome.why.includes(stand.token));
      }
    });
  }

  test("a limit says when it ends", async () => {
    const { github } = await visit(stand);
    stand.fault(status(429, { "retry-after": "3600" }));
    const outcome = await github.issue(1);
    assert.ok(!outcome.ok);
    assert.equal(outcome.until, Date.UTC(2026, 0, 1, 1));
    assert.match(outcome.why, /until 2026-01-01T01:00:00Z/);
  });

  test("a wrong token, and a permission that is missing", async () => {
    const wrong = await visit(stand, { env: { ...stand.env, GH_TOKEN: `ghp_${"w".repeat(36)}` } });
    const refused = await wrong.github.issue(1);
    assert.ok(!refused.ok && refused.kind === "unauthorised");
    assert.match(refused.why, /the token from GH_TOKEN/);
    const { github } = await visit(stand);
    stand.fault(
      status(
        403,
        { "x-accepted-github-permissions": "issues=write" },
        { message: "Resource not accessible" },
      ),
    );
    const forbidden = await github.addLabels(1, ["x"]);
    assert.ok(!forbidden.ok);
    assert.match(forbidden.why, /\(Resource not accessible\): give it the permission issues=write/);
  });

  test("what GitHub says cannot break the line", async () => {
    const { github } = await visit(stand);
    stand.fault(
      status(422, {}, { message: "a\n\u001b[2Jb", errors: ["c", { field: "title", code: "invalid" }] }),
    );
    const outcome = await github.issue(1);
    assert.ok(!outcome.ok);
    assert.match(outcome.why, /\(a \\x1b\[2Jb; c; title invalid\)/);
  });

  test("queries are limited, forbidden and broken with the status 200", async () => {
    const { github, pauses } = await visit(stand);
    const errors = (type: string, message = "") =>
      status(200, {}, { data: null, errors: [{ type, message }] });
    const kinds: string[] = [];
    for (const fault of [
      errors("RATE_LIMITED"),
      errors("FORBIDDEN"),
      errors("INSUFFICIENT_SCOPES"),
      errors("OTHER", "bad query"),
      status(200, {}, { data: null }),
    ]) {
      stand.calm();
      stand.fault(fault);
      const outcome = await github.projects();
      kinds.push(outcome.ok ? "ok" : outcome.kind);
    }
    assert.deepEqual(kinds, ["limited", "forbidden", "forbidden", "invalid", "not-found"]);
    assert.deepEqual(pauses, [60_000, 60_000]);
  });

  test("an interrupted request is over at once", async () => {
    const controller = new AbortController();
    const { github } = await visit(stand, { signal: controller.signal });
    stand.fault({ kind: "hang" });
    const asked = github.issue(1);
    await until(() => stand.log.length > 0, "a request");
    controller.abort();
    const outcome = await asked;
    assert.ok(!outcome.ok && outcome.kind === "network");
    assert.match(outcome.why, /interrupted/);
    assert.equal(stand.log.length, 1);
  });

  test("redirects on the same host are followed, a write only as a write", async () => {
    const issue = stand.world.addIssue();
    const { github } = await visit(stand);
    const location = `/repos/octo/demo/issues/${issue.number}`;
    stand.fault(status(301, { location }), { path: /issues\/77$/ });
    assert.equal((await got(github.issue(77))).number, issue.number);
    stand.fault(status(307, { location: `${location}/comments` }), { path: /issues\/77\/comments$/ });
    await got(github.createComment(77, "moved"));
    assert.equal(issue.comments.length, 1);
  });
});

withStandIn("pages that change while they are read", () => {
  const fill = (count: number) => {
    for (let index = 0; index < count; index += 1) stand.world.addIssue();
  };
  test("a new one in front makes none appear twice", async () => {
    fill(150);
    const { github } = await visit(stand);
    let isAdded = false;
    stand.onRequest = () => {
      if (!isAdded) stand.world.addIssue();
      isAdded = true;
    };
    const { items } = await got(github.issues({ limit: 1000 }));
    assert.equal(items.length, 150);
    assert.equal(new Set(items.map(({ number }) => number)).size, 150);
  });

  test("one that is gone ends it earlier", async () => {
    fill(101);
    const { github } = await visit(stand);
    stand.onRequest = () => stand.world.issues.clear();
    assert.equal((await got(github.issues({ limit: 1000 }))).items.length, 100);
  });

  test("a link in a circle, or to another host, ends it", async () => {
    fill(5);
    const { github } = await visit(stand);
    const body = [{ number: 1 }] as unknown as { message: string };
    stand.fault(status(200, { link: '<https://elsewhere.test/x?page=2>; rel="next"' }, body));
    const { items } = await got(github.issues({ limit: 1000 }));
    assert.equal(items.length, 1);
    assert.equal(stand.log.length, 2);
    assert.ok(stand.log.every(({ path }) => path === "/repos/octo/demo/issues"));
  });

  test("more and more new ones come to an end", async () => {
    fill(30);
    const { github } = await visit(stand);
    stand.onRequest = () => fill(10);
    const { items, more } = await got(github.issues({ limit: 20 }));
    assert.deepEqual([items.length, more], [20, true]);
  });
});

describe("the stand-in", () => {
  const asks: readonly (readonly [name: string, ask: (at: StandIn) => Promise<unknown>])[] = [
    ["a body that does not fit", (at) => post(at, "issues", { title: "x", labels: "none" })],
    ["an operation that is not described", (at) => post(at, "hooks", {})],
    ["a query that is not described", (at) => post(at, "issues?x=1", { title: "x" })],
  ];
  const post = (at: StandIn, path: string, body: object) =>
    fetch(`${at.url}/repos/octo/demo/${path}`, {
      method: "POST",
      headers: { authorization: `token ${at.token}` },
      body: JSON.stringify(body),
    });
  for (const [name, ask] of asks) {
    test(`notices ${name}`, async () => {
      const own = await openStandIn();
      await ask(own);
      await assert.rejects(own.close());
    });
  }
});

const ADDRESSES: readonly (readonly [address: string, expected: string | null])[] = [
  ["git@github.com:o/r.git", "github.com o r"],
  ["github.com:o/r", "github.com o r"],
  ["ssh://git@github.com/o/r.git", "github.com o r"],
  ["ssh://git@ssh.github.com:443/o/r.git", "github.com o r"],
  ["https://github.com/o/r", "github.com o r"],
  ["https://github.com/o/r.js.git/", "github.com o r.js"],
  [["https://user", "pass@GitHub.com/o/r.git"].join(":"), "github.com o r"],
  ["https://www.github.com/o/r", "github.com o r"],
  ["git://github.com/o/r.git", "github.com o r"],
  ["https://ghe.corp:8443/o/r", "ghe.corp:8443 o r"],
  ["ssh://git@ghe.corp:2222/o/r", "ghe.corp o r"],
  ["git@work-alias:o/r.git", "work-alias o r"],
  ["/srv/git/r.git", null],
  ["../r", null],
  ["file:///srv/git/r.git", null],
  ["https://github.com/o", null],
  ["https://github.com/o/r/issues", null],
  ["https://github.com/o/..", null],
  ["git@github.com:o/r/../../x", null],
  ["o/r", null],
  ["", null],
];

test("addresses of remotes", () => {
  for (const [address, expected] of ADDRESSES) {
    const found = parseRepository(address, null);
    assert.equal(found && `${found.host} ${found.owner} ${found.repo}`, expected, address);
  }
  assert.deepEqual(parseRepository("o/r", "github.com"), { host: "github.com", owner: "o", repo: "r" });
  assert.deepEqual(parseRepository("ghe.corp/o/r", "github.com"), {
    host: "ghe.corp",
    owner: "o",
    repo: "r",
  });
});

const packages = process.env["LOCKSTEP_PACKAGES"] ?? "";
const schemaFile = join(packages, "node_modules/@octokit/graphql-schema/schema.graphql");
const { skip } = needs(existsSync(schemaFile), "@octokit/graphql-schema not installed");
test("our queries are valid in GitHub's own schema", { skip }, async () => {
  const resolve = createRequire(schemaFile);
  const { buildSchema, parse, validate } = (await import(resolve.resolve("graphql"))) as GraphQL;
  // Their schema says some things twice.
  const schema = buildSchema(readFileSync(schemaFile, "utf8"), { assumeValid: true, assumeValidSDL: true });
  for (const query of [PROJECT, PROJECTS, ITEMS, ITEMS_OF_ISSUE])
    assert.deepEqual(validate(schema, parse(query)), []);
  assert.equal(validate(schema, parse(PROJECT.replace("title", "tilte"))).length, 1);
});

type GraphQL = {
  readonly buildSchema: (text: string, options: object) => object;
  readonly parse: (query: string) => object;
  readonly validate: (schema: object, query: object) => readonly unknown[];
};

const isThere = existsSync(join(packages, "node_modules/@octokit/openapi"));
test(
  "the excerpt of GitHub's description is what the script makes",
  needs(isThere, "@octokit/openapi not installed"),
  () => {
    assert.deepEqual(description, describeGitHub(packages));
  },
);
