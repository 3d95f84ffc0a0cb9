/** Small parts of the loader, each by a table: near words, paths, climpt's files, hosts, names of stages, YAML. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { climptFolder, climptIn, climptPatterns, NO_CLIMPT } from "../../../src/load/agent/climpt.ts";
import { continuationOf } from "../../../src/load/registry/moves.ts";
import { faultOfHost } from "../../../src/flow/hosts.ts";
import { stagePaths } from "../../../src/load/stages/machine.ts";
import { escapesProject, joinPath } from "../../../src/load/text/paths.ts";
import { didYouMean, onlyNear } from "../../../src/flow/text/suggest.ts";
import { readYaml } from "../../../src/load/text/yaml.ts";
import { filesOf } from "../world.ts";

test("the nearest word", () => {
  const rows: readonly (readonly [word: string, candidates: readonly string[], nearest: string | null])[] = [
    ["maxIteration", ["maxIterations", "model"], "maxIterations"],
    ["max_iterations", ["model", "maxIterations"], "maxIterations"],
    ["modle", ["mode", "model"], "mode"],
    ["modal", ["mode", "model", "modals"], "model"],
    ["abab", ["ab", "abcabab"], "abcabab"],
    ["aab", ["ab"], "ab"],
    ["aba", ["ababa"], null],
    ["xyzaba", ["xyzababa", "xyzabaq"], "xyzabaq"],
    ["abcabc", ["abc"], null],
    ["issue_number", ["issue"], "issue"],
    ["number", ["issue_number"], "issue_number"],
    ["nose", ["nosexy-things"], "nosexy-things"],
    ["nos", ["nosexy-things"], null],
    ["nothing", ["else"], null],
    // The first of two that are as near, and one that differs only in how it is spelled before any other.
    ["colour", ["colourr", "colours"], "colourr"],
    ["a-b-c-d", ["abce", "a.b.c.d", "A_B_C_D"], "a.b.c.d"],
  ];
  for (const [word, candidates, nearest] of rows)
    assert.equal(didYouMean(word, candidates), nearest === null ? "" : ` Did you mean "${nearest}"?`, word);
});

test("the only word that is one slip away", () => {
  const rows: readonly (readonly [word: string, candidates: readonly string[], only: string | null])[] = [
    ["sonet", ["sonnet", "opus"], "sonnet"],
    ["sonnets", ["sonnet"], "sonnet"],
    ["snonet", ["sonnet"], "sonnet"],
    ["sanmet", ["sonnet"], null],
    ["sonnet", ["sonnet"], null],
    ["SON-NET", ["sonnet"], "sonnet"],
    ["opux", ["opus", "opuz"], null],
    ["opux", ["opus", "opus"], "opus"],
    ["abx", ["abc"], null],
    ["aaaa", ["aaa"], null],
    ["aaaab", ["aaab"], "aaab"],
    ["abab", ["ababab"], null],
  ];
  for (const [word, candidates, only] of rows) assert.equal(onlyNear(word, candidates), only, word);
});

test("paths are joined, and those that lead out are known", () => {
  const rows: readonly (readonly [base: string, path: string, joined: string, escapes: boolean])[] = [
    ["a/b", "c", "a/b/c", false],
    ["a/b", "./c/../d", "a/b/d", false],
    ["a/b", "../../..", "..", true],
    ["a", "../..x", "..x", false],
    ["a", "../../x", "../x", true],
    ["a", "/etc", "/etc", true],
    ["a", "C:/x", "C:/x", true],
    ["a", "b/C:x", "a/b/C:x", false],
    ["a", "x\\y", "x\\y", true],
    ["a", "x\0y", "a/x\0y", true],
    ["", "", "", false],
  ];
  for (const [base, path, joined, escapes] of rows) {
    assert.equal(joinPath(base, path), joined);
    assert.equal(escapesProject(joined), escapes, joined);
  }
});

const climpt = (app: string, user = "") => {
  const folder = ".agent/climpt/config";
  const files = { [`${folder}/dev-steps-app.yml`]: app, [`${folder}/dev-steps-user.yml`]: user };
  return climptIn(filesOf(files), readYaml);
};

test("the prompt folder that climpt's own file names", () => {
  const rows: readonly (readonly [text: string, folder: string | null])[] = [
    ["app_prompt:\n  base_dir: .agent/dev/prompts/steps\n", ".agent/dev/prompts"],
    ["working_dir: .agent/dev\napp_prompt:\n  base_dir: prompts/steps\n", ".agent/dev/prompts"],
    ["app_prompt:\r\n  base_dir: prompts/steps \t\r\n", "prompts"],
    ["app_prompt:\n  base_dir: prompts/steps   # where they are\n", "prompts"],
    ["app_prompt:\n  base_dir: # here\n  other: x\n", null],
    ["app_prompt:\n  base_dir: 'it''s/steps'  # quoted\n", "it's"],
    ['app_prompt:\n  base_dir: "a\\\\b/steps"\n', "a\\b"],
    ["'app_prompt':\n  \"base_dir\": prompts/steps\n", "prompts"],
    ["app_prompt:\n  base_dir: prompts/other\n", null],
    ["base_dir: prompts/steps\n", null],
    ["other:\n  base_dir: x/steps\napp_prompt:\n  base_dir: y/steps\n", "y"],
    ["app_prompt:\n  deep:\n    base_dir: x/steps\n  base_dir: y/steps\n", "y"],
    ["app_prompt:\n  x:base_dir: x/steps\n", null],
    ["app_prompt:\n- base_dir: x/steps\n", null],
    ["", null],
  ];
  for (const [text, folder] of rows) assert.equal(climptFolder("dev", "steps", climpt(text)), folder, text);
  assert.equal(climptFolder("dev", "steps", NO_CLIMPT), null);
});

test("what climpt's own file lets c2 and c3 be", () => {
  const user = (c2: string, c3 = "'^x$'") =>
    `params:\n  two:\n    directiveType:\n      pattern: ${c2}\n    layerType:\n      pattern: ${c3}\n`;
  const patterns = (c2: string) => climptPatterns("dev", "steps", climpt("a: b\n", user(c2)));
  assert.equal(patterns("'^(initial|closure)$'")!.c2?.source, "^(initial|closure)$");
  assert.equal(patterns("'^a$'")!.c3?.source, "^x$");
  assert.equal(patterns("'^a$'")!.file, ".agent/climpt/config/dev-steps-user.yml");
  const rows: readonly (readonly [pattern: string, isTaken: boolean])[] = [
    ["a*b+", true],
    ["a*b+c*", false],
    ["a+b+c+", false],
    ["a{1}b{2}c{3}", false],
    ["(a)*", false],
    ["(a)+", false],
    ["(a)?", false],
    ["(a){2}", false],
    ["(a", false],
    ["x".repeat(2000), true],
    ["x".repeat(2001), false],
  ];
  for (const [pattern, isTaken] of rows)
    assert.equal(patterns(`'${pattern}'`)!.c2 !== null, isTaken, pattern.slice(0, 40));
  assert.equal(
    climptPatterns(
      "dev",
      "steps",
      climptIn(filesOf({ ".agent/climpt/config/dev-steps-user.yml": "a: b" }), readYaml),
    ),
    null,
  );
});

test("hosts that can be allowed", () => {
  const rows: readonly (readonly [host: string, why: RegExp | null])[] = [
    ["a.org", null],
    ["a.org:443", null],
    ["*.a.org", null],
    ["*.a.org:8080", null],
    ["a.org:65535", null],
    ["a.org:65536", /port/],
    ["a.org:0", /port/],
    ["a.org:1", null],
    ["*", /every host$/],
    ["*.", /every host$/],
    ["*.org", /every host below \.org/],
    ["", /not a host name/],
    [":80", /not a host name/],
    ["a..org", /not a host name/],
    ["-a.org", /not a host name/],
    ["a-.org", /not a host name/],
    [`${"a".repeat(63)}.org`, null],
    [`${"a".repeat(64)}.org`, /not a host name/],
    ["https://a.org", /not a host name/],
    ["localhost", /every service on this machine/],
    ["x.LOCALHOST", /every service on this machine/],
    ["localhost.org", null],
    ["localhost:8080", null],
    ["127.0.0.1", /every service on this machine/],
    ["127.1:80", null],
    ["1.127.0.1", null],
    ["0", /every service on this machine/],
    ["0.0", /every service on this machine/],
    ["0.0.0.1", null],
    ["0x7f000001", /every service on this machine/],
    ["2130706433", /every service on this machine/],
    ["21a.org", null],
  ];
  for (const [host, why] of rows) {
    const found = faultOfHost(host)?.why ?? null;
    if (why === null) assert.equal(found, null, host);
    else assert.match(found ?? "", why, host);
  }
});

test("a stage is a file of Markdown that is not hidden", () => {
  const names = ["a.md", ".b.md", "c.mdx", "d.txt", "e.x.md", ".md", "md"];
  const files = filesOf(Object.fromEntries(names.map((name) => [`.agent/m/stages/${name}`, ""])));
  assert.deepEqual(stagePaths("m", files), [".agent/m/stages/a.md", ".agent/m/stages/e.x.md"]);
});

test("initial.X goes on as continuation.X, and nothing else does", () => {
  const flow = {
    kinds: new Map([
      ["continuation.a", "work"],
      ["continuation.initial.a", "work"],
      ["continuation.l.a", "work"],
    ]),
  };
  const after = (id: string) => continuationOf(id, flow as unknown as Parameters<typeof continuationOf>[1]);
  assert.deepEqual(["initial.a", "initial.b", "x-initial.a", "closure.a"].map(after), [
    "continuation.a",
    null,
    null,
    null,
  ]);
});
