/** What is said to somebody who types what is not there: a word of another program, an agent, a path, or too little. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { commandNamed, COMMANDS } from "../../../src/cli/commands.ts";
import { OTHER_WORDS } from "../../../src/cli/text/meant.ts";
import { enter } from "../../canary/doors.ts";
import { agentFiles, homeBeside, projectWith, stepTo } from "../../run/project.ts";

const STEPS = { "initial.a": stepTo("closure", { closing: null }) };
const NONE = projectWith({ "README.md": "" });
const ONE = projectWith(agentFiles("notes", STEPS));
const topic = { type: "string", description: "d", required: true, cli: "--topic" };
const ASKING = projectWith(agentFiles("asking", STEPS, { agent: { parameters: { topic } } }));
const reply = { output: { stepId: "initial.a", next_action: { action: "closing" } } };
const RAN = projectWith({
  ...agentFiles("notes", STEPS),
  "script.json": JSON.stringify({ replies: [reply] }),
});
await enter(["run", "notes", "--script", "script.json"], RAN, { PATH: process.env.PATH, HOME: homeBeside() });
const TWO = projectWith({ ...agentFiles("notes", STEPS), ...agentFiles("start", STEPS) });

for (const [folder, line, said] of [
  [NONE, "start", /There is no command "start"\. Did you mean "run"\? See: lockstep --help/],
  [NONE, "NEW notes", /There is no command "NEW"\. Did you mean "init"\?/],
  [NONE, "version", /Did you mean "--version"\?/],
  [NONE, "chek", /Did you mean "check"\?/],
  [NONE, "elephant", /There is no command "elephant"\. See: lockstep --help$/m],
  [NONE, "constructor", /There is no command "constructor"\. See: lockstep --help$/m],
  [ONE, "notes", /There is an agent of this name\. Start it with: lockstep run notes$/m],
  [TWO, "start", /There is an agent of this name\. Start it with: lockstep run start$/m],
  [NONE, "run", /run needs NAME\. There is no agent here\. Create one with: lockstep init notes$/m],
  [ONE, "run", /run needs NAME\. The agent here is notes\. See: lockstep run --help/],
  [TWO, "graph", /graph needs NAME\. The agents here are notes, start\. See: /],
  [
    ONE,
    "show",
    /show needs RUN\|FILE\. Give the id of a run from `lockstep runs`, or @last for the newest\./,
  ],
  [ONE, "diff @last", /diff needs RUN RUN; only "@last" was given\. See: /],
  [RAN, "show last", /There is no run "last"\. Did you mean "@last"\?/],
  [RAN, "show @fail", /There is no run "@fail"\. Did you mean "@failed"\?/],
  [RAN, "show zzzzzzz", /There is no run "zzzzzzz"\. `lockstep runs`/],
  [ASKING, "run asking tides", /run takes no argument "tides"\. Parameters .* with flags: --topic tides$/m],
  [ASKING, "run asking --topic a b", /run takes no argument "b"\. See: /],
  [ASKING, "run asking -topic tides", /Unknown flag -topic\. With two dashes it is known: --topic$/m],
  [ASKING, "run asking -topic=tides", /Unknown flag -topic\. With two dashes it is known: --topic$/m],
  [ASKING, "run asking -topix tides", /Unknown flag -t\. See: /],
  [NONE, "init", /init needs NAME, as in: lockstep init notes$/m],
  [NONE, "test", /There is no agent in .*\.agent\. Create one with: lockstep init NAME$/m],
  [
    ONE,
    "check .agent/notes/agent.json",
    /Write the name of the agent, notes, instead of a path\. In this project there is: notes\.$/m,
  ],
  [ONE, "check a/b", /Write the name of the agent instead of a path\./],
  [ONE, "check note", /Did you mean "notes"\? In this project there is: notes\.$/m],
  [NONE, "check a/b", /create one with: lockstep init NAME$/m],
  [NONE, "check mine", /create one with: lockstep init mine$/m],
] as const)
  test(`lockstep ${line}: ${said.source}`, async () => {
    const ran = await enter(line.split(" "), folder, { PATH: process.env.PATH, HOME: homeBeside() });
    assert.equal(ran.code, 2);
    assert.match(ran.stderr + ran.stdout, said);
  });

test("words of other programs are none of ours, and lead to a command that is there", () => {
  for (const [word, command] of Object.entries(OTHER_WORDS)) {
    assert.ok(!COMMANDS.some(({ name }) => name === word), word);
    if (command !== "--version")
      assert.equal(commandNamed(command.split(" ")[0]!).name, command.split(" ")[0]);
  }
});
