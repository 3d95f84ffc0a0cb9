/** What `check` found before the redesign: in every example, in the agents of the tests, and in a thousand mutations. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { filesOf, mutationsOf, storedAgents, type Agent } from "./agents.ts";
import { lockstep, problemsOf, type Problem } from "./doors.ts";
import { holdDocument, holdLines, holdText } from "./stored.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));
/** Mutations of a good agent: more of those that stand for a dialect, or have many forms. */
const MUTATIONS: { readonly [key: string]: number } = {
  "base-check": 164,
  "base-complete": 164,
  "base-rich": 100,
  "base-gate": 60,
};
const EACH = 32;
const BESIDE = 6;
const SEED = 20_261_116;

const folder = mkdtempSync(join(tmpdir(), "lockstep-baseline-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const stored = storedAgents();
const bases = stored.filter(({ key }) => key.startsWith("base-"));
const mutated = bases.flatMap((base, place) => mutationsOf(base, SEED + place, MUTATIONS[base.key] ?? EACH));

describe("findings before the redesign", () => {
  test("there are a thousand mutations", () => assert.equal(mutated.length, 1000));

  const files = Map.groupBy([...stored, ...mutated], (agent) => `${dialectOf(agent)}-${sourceOf(agent)}`);
  for (const [name, agents] of files)
    test(name, async () => {
      const lines: string[] = [];
      // Modules are parsed in threads of their own, which can work beside each other.
      for (let at = 0; at < agents.length; at += BESIDE) {
        const found = await Promise.all(agents.slice(at, at + BESIDE).map(findingsIn));
        lines.push(...found.flat());
      }
      holdLines(`checks/${name}.txt`, lines);
    });
});

function sourceOf({ key }: Agent): string {
  return key.includes("~") ? "mutated" : key.startsWith("base-") ? "good" : "tested";
}

/** By the files alone: what an agent is loaded as may be part of what changes. */
function dialectOf({ name, tree }: Agent): string {
  if (Object.keys(tree).some((path) => path.includes("/stages/"))) return "stage";
  return name === "code-improver" ? "check" : name === "issues" ? "complete" : "gate";
}

async function findingsIn({ key, name, tree }: Agent): Promise<readonly string[]> {
  const problems = await problemsOf(name, filesOf(tree), folder);
  const lines = problems.map((problem) => `${key} ${lineOf(problem, name)}`);
  return lines.length === 0 ? [`${key} nothing`] : [...new Set(lines)].toSorted();
}

/** `error FLOW-NO-END steps_registry.json:12:5 /steps/a a`: everything but the words. */
function lineOf({ severity, code, file, line, column, pointer, step }: Problem, name: string): string {
  const place = `${file.replace(`.agent/${name}/`, "")}:${line}:${column}`;
  return [severity, code, place, pointer || "-", step ?? "-"].join(" ").replaceAll(/[\n\r]/g, "¶");
}

describe("the examples as the command reports them", () => {
  const env = { XDG_CONFIG_HOME: folder, HOME: folder };
  for (const example of readdirSync(EXAMPLES, { withFileTypes: true }).filter((one) => one.isDirectory()))
    test(example.name, async () => {
      const cwd = join(EXAMPLES, example.name);
      for (const agent of readdirSync(join(cwd, ".agent"))) {
        const texts: string[] = [];
        const documents: { [line: string]: unknown } = {};
        const print = async (...words: readonly string[]) => {
          const { code, out, err } = await lockstep([...words, "--cwd", cwd], env);
          return { line: `lockstep ${words.join(" ")}`, code, out: out.replaceAll(cwd, "."), err };
        };
        const hold = async (...words: readonly string[]) => {
          const { line, code, out, err } = await print(...words);
          texts.push(`$ ${line}\n${out}${err}--- exit ${code}\n`);
          const { out: document } = await print(...words, "--json");
          documents[line] = JSON.parse(document) as unknown;
          return documents[line];
        };
        await hold("check", agent);
        // What confines commands on this machine is no part of the agent.
        await hold("explain", agent, "--sandbox", "off");
        const { nodes } = (await hold("graph", agent)) as {
          readonly nodes: readonly { readonly id: string }[];
        };
        for (const { id } of nodes) await hold("explain", agent, id, "--sandbox", "off");
        for (const format of ["mermaid", "dot"]) {
          const { line, out } = await print("graph", agent, "--format", format);
          texts.push(`$ ${line}\n${out}`);
        }
        holdText(`examples/${example.name}-${agent}.txt`, texts.join("\n"));
        holdDocument(`examples/${example.name}-${agent}.json`, documents);
      }
    });
});
