/** Values that a condition gives to a command: whatever they hold, they stay values. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { runProcess } from "../../src/effects/process/process.ts";
import { createShell } from "../../src/effects/process/shell.ts";
import { sketchCheck } from "../../src/testing/flows.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-values-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const { signal } = new AbortController();

/** Ways to have a second command run, if only a shell reads them. */
const ATTACKS: readonly string[] = [
  "$(touch pwned)",
  "`touch pwned`",
  "; touch pwned",
  "; touch pwned #",
  "&& touch pwned",
  "|| touch pwned",
  "| touch pwned",
  "& touch pwned &",
  "\ntouch pwned\n",
  "\r\ntouch pwned\r\n",
  ";touch${IFS}pwned",
  ";touch$IFS$9pwned",
  "> pwned",
  ">>pwned",
  "<(touch pwned)",
  "$((0$(touch pwned)))",
  "${x:-$(touch pwned)}",
  "${value:=$(touch pwned)}",
];

/** Ways out of wherever the value may have been put. */
const WRAPPINGS: readonly ((attack: string) => string)[] = [
  (attack) => attack,
  (attack) => `'${attack}'`,
  (attack) => `"${attack}"`,
  (attack) => `x'${attack}`,
  (attack) => `x"${attack}`,
  (attack) => `x\\"'"'${attack}`,
  (attack) => `)${attack}`,
  (attack) => `}${attack}`,
  (attack) => `\nEND\n${attack}`,
];

const ODDITIES: readonly string[] = [
  "",
  " ",
  "\t",
  "\n",
  "\n\n\n",
  "  padded  ",
  "a b",
  "*",
  "?",
  "[a-z]*",
  "/*",
  "**/*",
  "{a,b}",
  "~",
  "~root",
  "$HOME",
  "${HOME}",
  "$$",
  "$?",
  "$0",
  "$#",
  "$@",
  "${IFS}",
  "%s%s%n",
  "\\",
  "\\\\",
  "\\n",
  "\\0",
  "\\$(touch pwned)",
  "'",
  '"',
  "'\"'\"'",
  "''''",
  "`",
  "!",
  "!!",
  "#",
  "-",
  "--",
  "-n",
  "-e",
  "-rf",
  "--help",
  "--exec=touch pwned",
  "-oProxyCommand=touch pwned",
  "() { :;}; touch pwned",
  "a=b",
  "value=x",
  "a\u0001b\u0007c\u001b[2Jd\u007f",
  "\u2028touch pwned\u2029",
  "\u202etouch pwned",
  "\u200btouch pwned\u200b",
  "＄(touch pwned)",
  "；touch pwned",
  "｀touch pwned｀",
  "’; touch pwned; ’",
  "“$(touch pwned)”",
  "é e\u0301 ß İ 🙂 👩‍👩‍👧",
  "\ufefftouch pwned",
  "x".repeat(100_000),
  "$(touch pwned)".repeat(7_000),
];

const VALUES = [...ODDITIES, ...ATTACKS.flatMap((attack) => WRAPPINGS.map((wrap) => wrap(attack)))];

/**
 * The value in every place a command may have for it. Quoted, it must arrive as it is; without quotes it falls into
 * words, but none of them may be a command.
 * `-x`: without it grep takes quadratic time for a long pattern that repeats itself.
 */
const COMMAND = `
printf %s "\${value}" >arrived
other="\${value}"; printf %s "$other" >copied
printf %s "<\${value}>" >wrapped
[ "\${value}" = "$other" ] && case "\${value}" in "$other") ;; *) exit 9 ;; esac
set -- "\${value}"; printf %s "$1" >argument; echo $# >count
printf %s "\${value}" | LC_ALL=C grep -cxF -- "\${value}" >/dev/null
cat <<END >document
\${value}
END
: \${value} >/dev/null; for word in \${value}; do : "$word"; done
`;

const expected = ["argument", "arrived", "copied", "count", "document", "wrapped"];

describe("a hostile value runs nothing and arrives as it is", { concurrency: 4 }, () => {
  test("there are more than a hundred", () => assert.ok(new Set(VALUES).size > 200, `${VALUES.length}`));

  for (const [index, value] of VALUES.entries()) {
    test(JSON.stringify(value.slice(0, 60)), async () => {
      const cwd = join(folder, String(index));
      mkdirSync(cwd);
      const shell = createShell({ cwd, env: process.env, exec: runProcess });
      const check = { ...sketchCheck("values", COMMAND), env: { value } };
      const result = await shell.check(check, signal);
      assert.equal(result.unrecoverable, undefined, result.summary);
      assert.deepEqual(readdirSync(cwd).toSorted(), expected);
      const read = (name: string) => readFileSync(join(cwd, name), "utf8");
      assert.equal(read("arrived"), value);
      assert.equal(read("copied"), value);
      assert.equal(read("argument"), value);
      assert.equal(read("count"), "1\n");
      assert.equal(read("wrapped"), `<${value}>`);
      assert.equal(read("document"), `${value}\n`);
    });
  }
});

test("the canary would sing: the same text as part of the command is one", async () => {
  const cwd = join(folder, "canary");
  mkdirSync(cwd);
  const shell = createShell({ cwd, env: process.env, exec: runProcess });
  await shell.check(sketchCheck("values", 'printf %s "$(touch pwned)"'), signal);
  assert.deepEqual(readdirSync(cwd), ["pwned"]);
});

test("a value that no variable can hold stops the check before anything runs", async () => {
  const shell = createShell({ cwd: folder, env: process.env, exec: runProcess });
  for (const value of ["a\0b", "x".repeat(4 * 1024 * 1024)]) {
    const check = { ...sketchCheck("values", "touch ran"), env: { value } };
    const result = await shell.check(check, signal);
    assert.deepEqual([result.ok, result.unrecoverable], [false, true]);
    assert.ok(!readdirSync(folder).includes("ran"));
  }
});

test("a value does not hide what the command needs, and no secret comes with it", async () => {
  writeFileSync(join(folder, "a.txt"), "here");
  const env = { ...process.env, GITHUB_TOKEN: "canary" };
  const shell = createShell({ cwd: folder, env, exec: runProcess });
  const check = { ...sketchCheck("values", "cat a.txt; env; exit 1"), env: { value: "v" } };
  const { params } = await shell.check(check, signal);
  assert.match(params["stdout"] as string, /^here/);
  assert.match(params["stdout"] as string, /^value=v$/m);
  assert.doesNotMatch(params["stdout"] as string, /canary/);
});
