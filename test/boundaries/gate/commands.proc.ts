/** Lists of commands with built-ins of bash in them, against the real bash: what the gate lets through runs nothing else. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { judge } from "../../../src/boundaries/gate/gate.ts";
import { needs } from "../../needs.ts";
import { stepWith } from "../step.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-list-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const bash = needs(existsSync("/bin/bash"), "there is no bash here");

const BUILTINS =
  "printf test [ [[ read unset declare typeset local export readonly let wait mapfile readarray getopts echo type cd pwd true".split(
    " ",
  );
const allow = [...BUILTINS.map((name) => `Bash(${name}:*)`), "Bash(ls:*)"];
const isAllowed = (command: string) =>
  judge(stepWith({ allow }), { name: "Bash", input: { command } }, ["Bash"]).allow;

/** Names of files that a model could have made. */
const FILES = ["-v", "a[$(touch${IFS}PWNED)]", "b[`touch PWNED`]"];

function pwns(command: string): boolean {
  const mark = join(folder, "PWNED");
  rmSync(mark, { force: true });
  for (const file of FILES) writeFileSync(join(folder, file), "");
  const input = "a[$(touch PWNED)]\n";
  spawnSync("/bin/bash", ["-c", command], {
    cwd: folder,
    input,
    timeout: 10_000,
    env: { PATH: "/usr/bin:/bin" },
  });
  return existsSync(mark);
}

describe("attacks that run a command with the built-in alone", bash, () => {
  const attacks = [
    "printf -v 'a[$(touch PWNED)]' x",
    "printf -v 'a[`touch PWNED`]' x",
    'printf -v "a[\\$(touch PWNED)]" x',
    "printf -v a\\[\\$\\(touch\\ PWNED\\)\\] x",
    "printf '-v' 'a[$(touch PWNED)]' x",
    "printf -v'a[$(touch PWNED)]' x",
    "test -v 'a[$(touch PWNED)]'",
    "test -n x -a -v 'a[$(touch PWNED)]'",
    "[ -v 'a[$(touch PWNED)]' ]",
    "[[ -v 'a[$(touch PWNED)]' ]]",
    "[[ 'a[$(touch PWNED)]' -eq 0 ]]",
    "read 'a[$(touch PWNED)]'",
    "unset 'a[$(touch PWNED)]'",
    "declare 'a[$(touch PWNED)]=1'",
    "declare -i 'b=a[$(touch PWNED)]'",
    "typeset -i 'b=a[$(touch PWNED)]'",
    "readonly 'a[$(touch PWNED)]=1'",
    "let 'a[$(touch PWNED)]'",
    "getopts x 'a[$(touch PWNED)]' -x",
    "echo 'a[$(touch PWNED)]'; test -v \"$_\"",
    "echo 'a[$(touch${IFS}PWNED)]'; test -v $_",
    "test -v a*",
    "test *",
    "test {-v,'a[$(touch PWNED)]'}",
    "test -v ?\\[*",
    "let 'a[`touch PWNED`]'",
  ];
  for (const attack of attacks) test(attack, () => assert.equal(isAllowed(attack), false));
  test("most of them really do, so there is something to keep from", () => {
    const real = attacks.filter(pwns);
    assert.ok(real.length > attacks.length * 0.7, `${real.length} of ${attacks.length}: ${real.join("\n")}`);
  });
});

describe("what is harmless stays allowed", () => {
  const harmless = [
    "printf '%s\\n' 'a[$(x)]'",
    "printf '%s\\n' *.ts",
    "printf -- '-v %s' x",
    "printf 'done\\n'",
    "echo 'a[$(x)]' *",
    "ls a[0-9] *.ts",
    "test -f package.json",
    'test -n "$HOME"',
    "[ -f src/a.ts ]",
    '[ "$HOME" = /root ]',
    "[[ -d src ]]",
    "export CI=1",
    "unset CI",
  ];
  for (const one of harmless) test(one, () => assert.equal(isAllowed(one), true));
});

test(
  "random lines of built-ins, quotes, subscripts, names of files: none that is allowed runs anything",
  bash,
  () => {
    let seed = 20_261_115;
    const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
    const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
    const payloads = [
      "a[$(touch PWNED)]",
      "a[`touch PWNED`]",
      "a[$(touch${IFS}PWNED)]",
      "b=a[$(touch PWNED)]",
      "a[0]",
      "x",
      "-v",
      "-eq",
      "1",
      "=",
      "]",
      "]]",
      "%s",
      "--",
      "-n",
    ];
    const quotes: readonly ((text: string) => string)[] = [
      (text) => `'${text}'`,
      (text) => `"${text.replaceAll(/[$`"\\]/g, "\\$&")}"`,
      (text) => text.replaceAll(/[^\w-]/g, "\\$&"),
      (text) => `${text.slice(0, 2)}'${text.slice(2)}'`,
      (text) => text,
    ];
    const loose = ["$_", '"$_"', "*", "a*", "?[*", "{-v,x}", "$HOME", "''"];
    const word = () => (random(4) === 0 ? pick(loose) : pick(quotes)(pick(payloads)));
    const simple = () => [pick(BUILTINS), ...Array.from({ length: random(5) }, word)].join(" ");
    let allowed = 0;
    for (let count = 0; count < 40_000 && allowed < 400; count += 1) {
      const line = Array.from({ length: 1 + random(3) }, simple).join(
        pick(["; ", " && ", " || ", "\n", " | "]),
      );
      if (!/[[`*?$]/.test(line) || !isAllowed(line)) continue;
      allowed += 1;
      assert.equal(pwns(line), false, line);
    }
    assert.ok(allowed >= 200, `${allowed} lines`);
  },
);
