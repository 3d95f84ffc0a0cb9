/** Every kind of process that a run starts for a model or a project says in which mount namespace it is. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createMemoryJournal, run, type DriveOptions, type ScriptReply } from "../../src/run/index.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { agentFiles, projectWith, PROVEN, stepTo } from "./project.ts";
import { machineFiles } from "./stage-project.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const bwrap = needs(hasBwrap, NO_BWRAP);
const mcp = needs(
  existsSync(join(packages, "node_modules/@modelcontextprotocol/client/package.json")),
  "@modelcontextprotocol/client not installed",
);
const home = realpathSync(mkdtempSync(join(homedir(), ".lockstep-home-")));
after(() => rmSync(home, { recursive: true, force: true }));

const OURS = readlinkSync("/proc/self/ns/mnt");
/** Writes down where it is; in a shell, and in a module. */
const SH = "readlink /proc/self/ns/mnt > where";
const JS = `import fs from "node:fs"; const tell = () => fs.writeFileSync("where", fs.readlinkSync("/proc/self/ns/mnt"));`;
const SERVER = readFileSync(new URL("../fixtures/mcp/server.mjs", import.meta.url), "utf8");

type Kind = {
  readonly name: string;
  readonly files: { readonly [path: string]: string };
  readonly script: readonly ScriptReply[];
  readonly agent?: string;
  readonly needs?: { readonly skip: string | false };
};

const END = { output: { stepId: "closure.a", next_action: { action: "closing" } } };
const CLOSURE = stepTo("closure", { closing: null });
const tools = (...allowedTools: readonly string[]) => ({
  boundaries: { allowedTools, permissionMode: "acceptEdits" },
});
const proven = {
  ...PROVEN,
  validators: { proof: { ...PROVEN.validators.proof, command: SH } },
};
const actions = { enabled: true, types: ["plan"], outputFormat: "json", handlers: { plan: "./plan.mjs" } };
const BLOCK = `Done.\n\n\`\`\`json\n${JSON.stringify({ type: "plan", content: "x" })}\n\`\`\``;
const custom = { type: "meta:custom", config: { handlerPath: "./verdict.mjs" } };
/** What a module imports is code too, and lies where a command can write. */
const LIB = `${JS} export { tell };`;

const KINDS: readonly Kind[] = [
  {
    name: "a command of the model",
    files: agentFiles("t", { "closure.a": CLOSURE }, { runner: tools("Bash") }),
    script: [{ calls: [{ name: "Bash", input: { command: SH } }] }, END],
  },
  {
    name: "a check",
    files: agentFiles("t", { "closure.a": CLOSURE }, { runner: tools(), registry: proven }),
    script: [END],
  },
  {
    name: "a step that is a command",
    files: agentFiles(
      "t",
      {
        "initial.a": stepTo("work", { handoff: "closure.a" }),
        "closure.a": stepTo(
          "closure",
          { closing: null },
          {
            more: { runner: { command: "sh", args: ["-c", `${SH}; echo '${JSON.stringify(END.output)}'`] } },
          },
        ),
      },
      { runner: tools() },
    ),
    script: [{ output: { stepId: "initial.a", next_action: { action: "handoff" } } }],
  },
  {
    name: "hooks",
    agent: "m",
    files: machineFiles({
      stages: { a: {} },
      hooks: `${JS} export default { a: { setup: () => tell() } };`,
    }),
    script: [{ calls: [{ name: "submit", input: {} }] }],
  },
  {
    name: "a module that decides about the end, with what it imports",
    files: {
      ...agentFiles(
        "t",
        { "initial.a": stepTo("work", { next: "initial.a" }) },
        { runner: { ...tools(), verdict: custom } },
      ),
      ".agent/t/verdict.mjs": `import { tell } from "../../lib/util.mjs"; export default () => { tell(); return { finished: true, reason: "" }; };`,
      "lib/util.mjs": LIB,
    },
    script: [{ output: { stepId: "initial.a", next_action: { action: "next" } } }],
  },
  {
    name: "an action module, with what it imports",
    files: {
      ...agentFiles("t", { "closure.a": CLOSURE }, { runner: { ...tools(), actions } }),
      ".agent/t/plan.mjs": `import { tell } from "../../lib/util.mjs"; export default () => tell();`,
      "lib/util.mjs": LIB,
    },
    script: [{ ...END, text: BLOCK }],
  },
  {
    name: "an MCP server",
    needs: mcp,
    files: {
      ...agentFiles(
        "t",
        { "closure.a": CLOSURE },
        {
          runner: {
            ...tools("mcp__t__*"),
            mcpServers: { t: { command: process.execPath, args: ["server.mjs"] } },
          },
        },
      ),
      "server.mjs": `${JS} tell();\n${SERVER}`,
    },
    script: [END],
  },
];

async function whereOf({ files, script, agent = "t" }: Kind, options: Partial<DriveOptions>) {
  const cwd = projectWith(files);
  const { PATH } = process.env;
  const env = { PATH, HOME: home, LOCKSTEP_TRUST: "all", LOCKSTEP_PACKAGES: packages };
  const result = await run({ agent, cwd, journal: createMemoryJournal(), env, script, ...options });
  assert.equal(result.success, true, result.reason);
  return { where: readFileSync(join(cwd, "where"), "utf8").trim(), result };
}

describe("unless the user says otherwise, it is confined:", bwrap, () => {
  for (const kind of KINDS) {
    test(kind.name, kind.needs ?? {}, async () => {
      const { where, result } = await whereOf(kind, {});
      assert.match(where, /^mnt:/);
      assert.notEqual(where, OURS);
      assert.equal(result.sandbox?.confined, true);
    });
  }
});

describe("with --sandbox off it is not:", () => {
  for (const kind of KINDS) {
    test(kind.name, kind.needs ?? {}, async () => {
      const { where, result } = await whereOf(kind, { sandbox: "off" });
      assert.equal(where, OURS);
      assert.equal(result.sandbox?.confined, false);
    });
  }
});
