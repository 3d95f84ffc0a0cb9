/** Descriptors that the program was started with lead nowhere for anything that it starts. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { agentFiles, writeFiles } from "../run/project.ts";
import { machineFiles } from "../run/stage-project.ts";
import { MAIN, start } from "./world.ts";

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const NUMBERS = [3, 8, 17, 100, 251];
const OPENED = NUMBERS.map((number) => `${number}<"$1"`).join(" ");
/** What it finds behind its numbers above 2. */
const LIST = "for f in /proc/self/fd/*; do case $f in */[012]) ;; *) readlink $f;; esac; done 2>/dev/null";

/** The folder that must not be reached, and a project beside it. */
function ground() {
  const base = realpathSync(mkdtempSync(join(homedir(), ".lockstep-fds-")));
  made.push(base);
  const [open, project] = [join(base, "canary-open"), join(base, "project")];
  mkdirSync(open);
  writeFileSync(join(open, "secret"), "CANARY");
  mkdirSync(project);
  return { base, open, project };
}

async function lockstep(base: string, open: string, cwd: string, args: readonly string[]) {
  const line = `exec ${OPENED}; shift; exec "$@"`;
  const env = { PATH: process.env.PATH, HOME: join(base, "home"), LOCKSTEP_TRUST: "all" };
  return await start("bash", ["-c", line, "bash", open, process.execPath, MAIN, ...args], cwd, { env });
}

const STEPS = {
  "initial.w": {
    kind: "work",
    intents: ["handoff"],
    transitions: { handoff: { target: "closure.w" } },
  },
  "closure.w": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
} as const;

describe("inherited descriptors", () => {
  for (const sandbox of ["off", "on"] as const) {
    test(
      `commands, checks and git, sandbox ${sandbox}`,
      sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {},
      async () => {
        const { base, open, project } = ground();
        writeFileSync(
          join(base, "filter"),
          `#!/bin/sh\n{ ${LIST}; echo filtered; } >> "${project}/fds-git.txt"\ncat\n`,
          {
            mode: 0o755,
          },
        );
        mkdirSync(join(base, "home"));
        const settings = `[user]\n\tname = n\n\temail = n@example.invalid\n[filter "mine"]\n\tclean = ${base}/filter\n`;
        writeFileSync(join(base, "home/.gitconfig"), settings);
        const check = {
          type: "command",
          command: `{ ${LIST}; echo checked; } > fds-check.txt`,
          successWhen: "exitCode:0",
          failurePattern: "p",
        };
        const registry = {
          validators: { v: check },
          failurePatterns: { p: { description: "p", edition: "failed", params: [] } },
          validationSteps: {
            "closure.w": {
              stepId: "closure.w",
              name: "v",
              c2: "retry",
              c3: "w",
              validationConditions: [{ validator: "v" }],
              onFailure: { action: "retry", maxAttempts: 1 },
            },
          },
        };
        const execution = { worktree: { enabled: true } };
        const verdict = { type: "detect:graph", config: { maxIterations: 5 } };
        const boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
        const runner = { flow: { systemPromptPath: "prompts/system.md" }, verdict, boundaries, execution };
        writeFiles(project, {
          ...agentFiles("w", STEPS, { runner, registry }),
          ".gitattributes": "left.txt filter=mine\n",
        });
        const bash = {
          name: "Bash",
          input: {
            command: `{ ${LIST}; cat /proc/self/fd/*/secret; echo ran; } > fds-bash.txt 2>&1; echo x > left.txt`,
          },
        };
        const output = (step: string, action: string) => ({
          step,
          output: { stepId: step, next_action: { action } },
        });
        const replies = [
          { step: "initial.w", calls: [bash] },
          output("initial.w", "handoff"),
          output("closure.w", "closing"),
        ];
        writeFileSync(join(project, "script.json"), JSON.stringify({ replies }));
        const setup = "git init -q -b main && git add -A && git commit -qm start";
        const env = { PATH: process.env.PATH, HOME: join(base, "home") };
        assert.equal((await start("sh", ["-c", setup], project, { env })).code, 0);
        const ran = await lockstep(base, open, project, [
          "run",
          "w",
          "--script",
          "script.json",
          "--sandbox",
          sandbox,
        ]);
        assert.equal(ran.code, 0, ran.stderr);
        const told = ["fds-bash.txt", "fds-check.txt", ...(sandbox === "off" ? ["fds-git.txt"] : [])].map(
          (name) => readFileSync(join(project, name), "utf8"),
        );
        assert.match(told.join(""), sandbox === "off" ? /ran[^]*checked[^]*filtered/ : /ran[^]*checked/);
        assert.doesNotMatch(told.join(""), /canary-open|CANARY/);
      },
    );

    test(
      `the code of a machine, sandbox ${sandbox}`,
      sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {},
      async () => {
        const { base, open, project } = ground();
        const look = `const fs = await import("node:fs"); const seen = fs.readdirSync("/proc/self/fd").map((n) => { try { return fs.readlinkSync("/proc/self/fd/" + n); } catch { return ""; } }); fs.writeFileSync("fds.json", JSON.stringify(seen));`;
        const hooks = `export default { a: { setup: async () => { ${look} } } };`;
        writeFiles(project, machineFiles({ stages: { a: { body: "x" } }, hooks }));
        writeFileSync(join(project, "script.json"), JSON.stringify({ replies: [{ output: {} }] }));
        const ran = await lockstep(base, open, project, [
          "run",
          "m",
          "--script",
          "script.json",
          "--sandbox",
          sandbox,
        ]);
        const seen = readFileSync(join(project, "fds.json"), "utf8");
        assert.doesNotMatch(seen, /canary-open/, ran.stderr);
      },
    );
  }

  test("the program itself keeps them: they may hold a lock", async () => {
    const { base, open, project } = ground();
    const { stdout } = await lockstep(base, open, project, ["list", "--json"]);
    assert.ok(stdout.length > 0);
    const line = `exec ${OPENED}; readlink /proc/$$/fd/100`;
    const shown = await start("bash", ["-c", line, "bash", open], base, { env: { PATH: process.env.PATH } });
    assert.equal(shown.stdout.trim(), open, "control: the shell does open them");
  });
});
