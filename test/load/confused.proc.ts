/** Files whose values are of the wrong type, through the commands that read them: never a bug, always a named failure. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { parse } from "yaml";
import { initFiles } from "../../src/cli/commands/init-files.ts";
import { enter } from "../canary/doors.ts";
import { machineFiles } from "../run/stage-project.ts";
import { mutateText, mutateValue } from "./mutate.ts";
import { random } from "./random.ts";

const ROUNDS = 300;
const SEED = 20_261_115;

const base = mkdtempSync(join(tmpdir(), "lockstep-confused-"));
after(() => rmSync(base, { recursive: true, force: true }));
const [project, home] = [join(base, "project"), join(base, "home")];
const env = { PATH: process.env.PATH, HOME: home };

const CHECKED = {
  validators: {
    proof: { type: "command", command: "true", successWhen: "exitCode:0", failurePattern: "none" },
  },
  failurePatterns: { none: { description: "No proof", edition: "failed", params: [] } },
  validationSteps: {
    "closure.note": {
      stepId: "closure.note",
      name: "Proof",
      c2: "retry",
      c3: "note",
      validationConditions: [{ validator: "proof" }],
      onFailure: { action: "retry", maxAttempts: 2 },
    },
  },
};

type Files = { readonly [path: string]: string };

/** Every path below the project; the settings are the user's. */
const SETTINGS = "../home/.config/lockstep/config.json";
const REGISTRY: Files = Object.fromEntries(
  Object.entries(initFiles("a")).map(([path, text]) => [
    `.agent/a/${path}`,
    path === "steps_registry.json" ? JSON.stringify({ ...(JSON.parse(text) as object), ...CHECKED }) : text,
  ]),
);
const MACHINE: Files = Object.fromEntries(
  Object.entries(
    machineFiles({
      stages: {
        plan: { next: { parallel: ["b", "c"], join: "d" }, gate: "t", output: { ok: "parsed.ok" } },
        b: { assert: ["t"], body: "{{ctx.task}} ${ctx.task}" },
        c: {},
        d: { next: { switch: "parsed.ok", cases: { true: "end", default: "plan" } } },
      },
      machine: {
        entry: "plan",
        inputs: { type: "object", properties: { task: { type: "string" } } },
        checks: { t: { type: "command", command: "true", successWhen: "exitCode:0" } },
      },
      agent: { version: "1.13.0", name: "m", displayName: "M" },
    }),
    // As JSON, which is YAML too: so that values can be changed wherever they are.
  ).map(([path, text]) => [path, path.endsWith(".md") ? asJson(text) : jsonOf(text)]),
);
const SETTING: Files = {
  [SETTINGS]: JSON.stringify({
    models: { quick: "openai/x", slow: { provider: "openai", model: "y", maxOutputTokens: 9 } },
    prices: { "openai/x": { input: 1, output: 2 } },
    defaultBackend: "quick",
    acp: { command: "coder", args: ["--x"], pass: ["A"] },
    command: { command: "model", timeoutMs: 9 },
    sandbox: "auto",
    network: ["example.org"],
    env: ["A"],
    limits: { turns: 5 },
    safeFolders: ["/nowhere"],
  }),
};

function asJson(stage: string): string {
  const [, front = "", body = ""] = stage.split(/^---\n/m);
  return `---\n${jsonOf(front)}\n---\n${body}`;
}

function jsonOf(yaml: string): string {
  return JSON.stringify(parse(yaml));
}

const DOORS: readonly (readonly string[])[] = [
  ["check", "NAME", "--json"],
  ["check", "NAME"],
  ["explain", "NAME"],
  ["explain", "NAME", "--boundary"],
  ["graph", "NAME"],
  ["graph", "NAME", "--format", "json"],
  ["trust", "show", "NAME"],
  ["list"],
  ["models"],
];

function write(files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
}

test("without a change every door opens", async () => {
  write({ ...REGISTRY, ...MACHINE, ...SETTING });
  for (const name of ["a", "m"])
    for (const door of DOORS) {
      const { code, stderr, stdout } = await enter(
        door.map((word) => word.replace("NAME", name)),
        project,
        env,
      );
      assert.equal(code, door[0] === "trust" ? 3 : 0, `${door.join(" ")} ${name}: ${stderr}${stdout}`);
    }
});

test(`${ROUNDS} files with values of the wrong type: every command ends with a failure that has a name`, async () => {
  const next = random(SEED);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const change = (path: string, text: string): string => {
    if (next() < 0.1) return mutateText(text, next);
    const [, front, body] = path.endsWith(".md") ? text.split(/^---\n/m) : [];
    if (front === undefined) return mutateValue(text, next, pick);
    return `---\n${mutateValue(front, next, pick)}\n---\n${body ?? ""}`;
  };
  let refused = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const [name, good] = round % 2 === 0 ? (["a", REGISTRY] as const) : (["m", MACHINE] as const);
    const all: Files = { ...good, ...SETTING };
    const changed = { ...all };
    const paths = Object.keys(all).filter((path) => /\.json$|machine\.yaml$|stages\/.+\.md$/.test(path));
    for (let times = 1 + Math.floor(next() * 4); times > 0; times--) {
      const path = pick(paths);
      changed[path] = change(path, changed[path]!);
    }
    write(changed);
    for (const door of [pick(DOORS), pick(DOORS), pick(DOORS)]) {
      const args = door.map((word) => word.replace("NAME", name));
      const { code, stdout, stderr } = await enter(args, project, env);
      const told = `round ${round}: ${args.join(" ")}: ${code}\n${stderr.slice(0, 2000)}`;
      assert.doesNotMatch(`${stdout}${stderr}`, /bug in Lockstep|TypeError|Maximum call stack/, told);
      assert.ok([0, 1, 2, 3].includes(code ?? -1), told);
      refused += code === 0 ? 0 : 1;
    }
    write(all);
  }
  assert.ok(refused > ROUNDS / 2 && refused < ROUNDS * 3, `${refused} were refused`);
});
