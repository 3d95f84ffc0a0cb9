/** The process of a module is killed from outside, as by a machine without memory: the run stops there and can go on. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Result, ScriptReply } from "../../src/run/index.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { closing, effectsOf, handoff, withActing, type Settings } from "./acting.ts";
import { runMachine } from "./stage-project.ts";

/** Ends its own process as the kernel does, once. */
const ONCE = `
  import { existsSync, writeFileSync } from "node:fs";
  const once = (signal) => {
    if (existsSync("killed")) return;
    writeFileSync("killed", "");
    process.kill(process.pid, signal);
    for (;;);
  };
`;
const DONE: ScriptReply = { output: {} };

function requireStopped(result: Result, signal: string): void {
  const { code, exitCode, outcome, resumable, reason } = result;
  assert.deepEqual([code, exitCode, outcome, resumable], ["MODULE_KILLED", 3, "failed", true], reason);
  assert.match(reason, new RegExp(`was ended by ${signal} from outside\\.`));
  assert.equal(/out of memory/.test(reason), signal === "SIGKILL");
  assert.match(reason, new RegExp(`continue with: lockstep resume ${result.run}$`));
}

for (const sandbox of ["off", "on"] as const) {
  const skip = sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {};
  describe(`a killed process, with the sandbox ${sandbox}`, skip, () => {
    for (const [hook, signal] of [
      ["setup", "SIGKILL"],
      ["checkGate", "SIGTERM"],
      ["assert", "SIGKILL"],
    ] as const)
      test(`of hooks, ${signal} in ${hook}`, async () => {
        const value = { setup: "undefined", checkGate: `"proceed"`, assert: `"ok"` }[hook];
        const hooks = `${ONCE} export default { a: { ${hook}: () => { once("${signal}"); return ${value}; } } };`;
        const ran = await runMachine({ stages: { a: {} }, hooks, model: [DONE], options: { sandbox } });
        requireStopped(ran.result, signal);
        assert.equal(ran.entries.at(-1)?.event.type === "run.ended", false, "the run is not over");
        const { result } = await ran.again(hook === "assert" ? [] : [DONE], { sandbox });
        assert.equal(result.outcome, "completed", result.reason);
      });

    test("of a module that decides about the end", async () => {
      const settings: Settings = {
        verdict: { type: "meta:custom", config: { handlerPath: "v.mjs" } },
        files: { ".agent/worker/v.mjs": `${ONCE} export default () => { once("SIGKILL"); return true; }` },
      };
      await goesOn(settings, [handoff(), closing()], sandbox, []);
    });

    test("of a module that carries out a block, which is asked whether it was done", async () => {
      const plan = `${ONCE}
        export default () => { once("SIGKILL"); };
        export const wasDone = () => false;`;
      const settings: Settings = {
        actions: { types: ["plan"], handlers: { plan: "./handlers/plan.mjs" } },
        files: { ".agent/worker/handlers/plan.mjs": plan },
      };
      const script = [handoff({ type: "plan", content: "x" }), closing()];
      await goesOn(settings, script, sandbox, ["action:module:applied"]);
    });
  });
}

async function goesOn(
  settings: Settings,
  script: readonly ScriptReply[],
  sandbox: "on" | "off",
  effects: readonly string[],
): Promise<void> {
  await withActing(settings, async ({ start, resume }) => {
    const stopped = await start(script, { sandbox });
    requireStopped(stopped, "SIGKILL");
    const result = await resume(stopped, { sandbox });
    assert.equal(result.outcome, "completed", result.reason);
    assert.deepEqual(effectsOf(result), effects);
  });
}
