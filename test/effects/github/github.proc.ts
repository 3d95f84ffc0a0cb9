/** Which repository and which token: real remotes, and a real program by the name of gh. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openGitHub } from "../../../src/effects/github/github.ts";
import { runProcess, type Env } from "../../../src/effects/process/process.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { createClock } from "../../github/client.ts";
import { openStandIn } from "../../github/stand-in.ts";

const outer = mkdtempSync(join(tmpdir(), "lockstep-github-"));
const bin = join(outer, "bin");
const plain: Env = { PATH: process.env["PATH"], HOME: outer };
const secret = `gho_${"p".repeat(36)}`;

before(() => {
  mkdirSync(bin);
  // It knows one host, and writes down what it was asked and what it could see.
  const script = `#!/bin/sh\necho "$@" >> ${outer}/asked\nenv >> ${outer}/seen\n[ "$4" = ghe.corp ] || exit 1\necho ${secret}\n`;
  writeFileSync(join(bin, "gh"), script);
  chmodSync(join(bin, "gh"), 0o755);
});
after(() => rmSync(outer, { recursive: true, force: true }));

function repository(name: string, remotes: { readonly [name: string]: string }): string {
  const folder = join(outer, name);
  execFileSync("git", ["init", "-q", folder]);
  for (const [remote, address] of Object.entries(remotes))
    execFileSync("git", ["-C", folder, "remote", "add", remote, address]);
  return folder;
}

async function open(cwd: string, env: Env) {
  const tokens: string[] = [];
  const signal = new AbortController().signal;
  const { clock } = createClock();
  const opened = await openGitHub({
    env: { ...plain, ...env },
    programs: programsFor({ ...plain, ...env }, [cwd]),
    exec: runProcess,
    cwd,
    signal,
    clock,
    onToken: (token) => tokens.push(token),
  });
  if (!opened.ok) return { kind: opened.kind, why: opened.why, tokens };
  const { host, owner, repo, repositoryFrom, tokenFrom } = opened.value;
  return { kind: `${host} ${owner}/${repo}`, why: `${repositoryFrom}; ${tokenFrom}`, tokens };
}

type Row = readonly [
  name: string,
  remotes: { readonly [name: string]: string },
  env: Env,
  kind: string,
  why: RegExp,
  token?: string,
];
const GH = { PATH: `${bin}:${process.env["PATH"]}` };
const enterprise = { origin: "git@ghe.corp:o/r.git" };
const usual = { upstream: "https://github.com/u/r.git", origin: "git@github.com:o/r.git" };
const ROWS: readonly Row[] = [
  ["origin comes first", usual, { GH_TOKEN: "a" }, "github.com o/r", /^the remote origin; GH_TOKEN$/, "a"],
  [
    "GH_TOKEN before GITHUB_TOKEN",
    usual,
    { GITHUB_TOKEN: "b", GH_TOKEN: "a" },
    "github.com o/r",
    /GH_TOKEN/,
    "a",
  ],
  ["GITHUB_TOKEN", usual, { GITHUB_TOKEN: "b" }, "github.com o/r", /GITHUB_TOKEN/, "b"],
  [
    "else the first",
    { far: "https://github.com/f/r" },
    { GH_TOKEN: "a" },
    "github.com f/r",
    /^the remote far/,
    "a",
  ],
  ["GH_REPO wins", usual, { GH_REPO: "x/y", GH_TOKEN: "a" }, "github.com x/y", /^GH_REPO/, "a"],
  [
    "GITHUB_REPOSITORY",
    {},
    { GITHUB_REPOSITORY: "x/y", GH_TOKEN: "a" },
    "github.com x/y",
    /^GITHUB_REPO/,
    "a",
  ],
  ["no remote", {}, { GH_TOKEN: "a" }, "no-repository", /set GH_REPO=OWNER\/NAME/],
  ["a remote in a folder", { origin: "/srv/x" }, { GH_TOKEN: "a" }, "no-repository", /GH_REPO/],
  ["GH_REPO that names none", usual, { GH_REPO: "r", GH_TOKEN: "a" }, "no-repository", /"r", which names no/],
  ["what cannot be a token", usual, { GH_TOKEN: "a\nb" }, "no-token", /set GH_TOKEN/],
  ["no token", usual, {}, "no-token", /set GH_TOKEN, or sign in with "gh auth login"/],
  ["gh does not know this host", usual, GH, "no-token", /github\.com/],
  ["gh knows this one", enterprise, GH, "ghe.corp o/r", /gh auth token/, secret],
  ["a token of github.com stays there", enterprise, { GH_TOKEN: "a" }, "no-token", /set GH_HOST=ghe\.corp/],
  ["a remote alone gets no token", enterprise, { GH_ENTERPRISE_TOKEN: "e" }, "no-token", /GH_HOST=ghe\.corp/],
  [
    "a host that the user names",
    enterprise,
    { GH_HOST: "ghe.corp", GH_ENTERPRISE_TOKEN: "e" },
    "ghe.corp o/r",
    /GH_ENTERPRISE_TOKEN/,
    "e",
  ],
  [
    "the server of an action",
    enterprise,
    { GITHUB_SERVER_URL: "https://ghe.corp", GITHUB_ENTERPRISE_TOKEN: "e" },
    "ghe.corp o/r",
    /GITHUB_ENTERPRISE_TOKEN/,
    "e",
  ],
  [
    "GH_REPO with a host",
    {},
    { GH_REPO: "ghe.corp/x/y", GH_ENTERPRISE_TOKEN: "e" },
    "ghe.corp x/y",
    /GH_REPO/,
    "e",
  ],
  [
    "a tenant of GitHub's cloud",
    { origin: "https://corp.ghe.com/o/r" },
    { GH_TOKEN: "a" },
    "corp.ghe.com o/r",
    /GH_TOKEN/,
    "a",
  ],
];

describe("where and with whose token", () => {
  for (const [name, remotes, env, kind, why, token] of ROWS) {
    test(name, async () => {
      const found = await open(repository(name.replaceAll(/\W/g, "-"), remotes), env);
      assert.equal(found.kind, kind, found.why);
      assert.match(found.why, why);
      assert.deepEqual(found.tokens, token === undefined ? [] : [token]);
    });
  }

  test("outside of any repository", async () => {
    assert.equal((await open(outer, { GH_TOKEN: "a" })).kind, "no-repository");
  });

  test("gh sees no token and no more of the environment than it needs", async () => {
    const folder = repository("looked-at", enterprise);
    await open(folder, {
      ...GH,
      GH_TOKEN: "a-token",
      ANTHROPIC_API_KEY: "a-key",
      GH_CONFIG_DIR: "/some/where",
    });
    assert.match(readFileSync(join(outer, "asked"), "utf8"), /^auth token --hostname ghe\.corp$/m);
    const seen = readFileSync(join(outer, "seen"), "utf8");
    assert.match(seen, /GH_CONFIG_DIR=\/some\/where/);
    assert.doesNotMatch(seen, /a-token|a-key/);
  });
});

test("a remote and an address of the environment lead to the stand-in", async () => {
  const stand = await openStandIn("o", "r");
  const issue = stand.world.addIssue();
  const signal = new AbortController().signal;
  const { clock } = createClock();
  const { GITHUB_API_URL, GH_TOKEN } = stand.env;
  const env = { ...plain, GITHUB_API_URL, GH_TOKEN };
  const cwd = repository("there", usual);
  const programs = programsFor(process.env, [cwd]);
  const opened = await openGitHub({ env, programs, exec: runProcess, cwd, signal, clock });
  assert.ok(opened.ok);
  assert.equal((await opened.value.repository()).ok, true);
  assert.equal((await opened.value.issue(issue.number)).ok, true);
  await stand.close();
});
