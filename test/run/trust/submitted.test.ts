/** What a submitter trusted is what a worker drives, and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../../../src/run/load.ts";
import { requireTrust, trustState, type SubmittedTrust } from "../../../src/run/trust/trust.ts";
import { agentFiles, homeBeside, projectWith } from "../project.ts";

const STEPS = {
  "initial.a": { kind: "work", intents: ["handoff"], transitions: { handoff: { target: "closure.a" } } },
  "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
} as const;
const runner = (allowedTools: readonly string[]) => ({
  runner: { boundaries: { allowedTools, permissionMode: "acceptEdits" } },
});
const roots = {
  harmless: projectWith(agentFiles("worker", STEPS, runner(["Read"]))),
  powerful: projectWith(agentFiles("worker", STEPS, runner(["Bash"]))),
};
const HOME = homeBeside();

async function flowAt(root: string) {
  const { flow } = await load("worker", { cwd: root });
  return flow!;
}
const about = (root: string, confined: boolean) => ({ root, env: { HOME }, confined });
const { digest: right } = await trustState(await flowAt(roots.powerful), about(roots.powerful, false));

const OTHER = "0".repeat(64);
const CASES: readonly (readonly [
  what: string,
  root: keyof typeof roots,
  digest: string | null,
  accepts: SubmittedTrust["accepts"],
  taken: boolean,
])[] = [
  ["what the submitter trusted", "powerful", right, "submitted", true],
  ["other files than the submitter trusted", "powerful", OTHER, "submitted", false],
  ["what nobody was asked about", "powerful", null, "submitted", false],
  ["nothing that needs trust", "harmless", null, "submitted", true],
  ["nothing that needs trust, with a list", "harmless", null, [], true],
  ["a digest of the list", "powerful", right, [OTHER, right], true],
  ["a digest of the list that the submitter did not trust", "powerful", null, [right], true],
  ["what the submitter trusted, but is not in the list", "powerful", right, [OTHER], false],
];
for (const [what, root, digest, accepts, taken] of CASES)
  for (const confined of [true, false])
    test(`${what} is ${taken ? "" : "not "}driven ${confined ? "in" : "without"} a sandbox`, async () => {
      const flow = await flowAt(roots[root]);
      const asked = requireTrust(flow, { ...about(roots[root], confined), submitted: { digest, accepts } });
      if (taken) await asked;
      else await assert.rejects(asked, { code: "NOT_TRUSTED" });
    });

test("a list holds also where the environment trusts everything", async () => {
  const flow = await flowAt(roots.powerful);
  const env = { HOME, LOCKSTEP_TRUST: "all" };
  const at = { root: roots.powerful, env, confined: false };
  await requireTrust(flow, { ...at, submitted: { digest: null, accepts: "submitted" } });
  const listed = requireTrust(flow, { ...at, submitted: { digest: right, accepts: [OTHER] } });
  await assert.rejects(listed, { code: "NOT_TRUSTED" });
});

test("nothing is recorded on the machine that drives the run", async () => {
  const flow = await flowAt(roots.powerful);
  const { state } = await trustState(flow, about(roots.powerful, false));
  assert.equal(state, "new");
});
