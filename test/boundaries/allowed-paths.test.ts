/** Folders that a sandbox is never opened for, whatever is trusted. */
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { refusePath } from "../../src/boundaries/sandbox/policy.ts";
import { projectWith } from "../run/project.ts";

const top = projectWith({ "user/code/p/.agent/a": "", "tools/bin/x": "", "user/code/data/x": "" });
const home = join(top, "user");
const root = join(home, "code/p");
mkdirSync(join(home, ".local/bin"), { recursive: true });
symlinkSync(join(home, ".local/bin"), join(root, "link"));
symlinkSync(join(home, ".local/bin"), join(home, "plain"));
const places = {
  cwd: root,
  root,
  agentsDir: join(root, ".agent"),
  stateDir: join(root, ".lockstep"),
  configDir: join(home, ".config/lockstep"),
  home,
  programs: [join(top, "tools/bin"), join(root, "node_modules/.bin"), "relative"],
};

for (const [path, why] of [
  ["~/.local/bin", /begins with a dot/],
  ["~/.config/systemd", /begins with a dot/],
  ["~/.config/fish", /begins with a dot/],
  ["~/.vim/plugin", /begins with a dot/],
  ["~/code/other/.git/hooks", /begins with a dot/],
  ["../data/.vscode", /begins with a dot/],
  [join(home, ".bashrc.d"), /begins with a dot/],
  ["link", /begins with a dot/],
  ["~/plain", /begins with a dot/],
  ["~/plain/not/there", /begins with a dot/],
  ["~/bin", /programs are started from/],
  ["~/Library/LaunchAgents", /programs are started from/],
  [join(top, "tools/bin"), /programs are started from/],
  [join(top, "tools"), /programs are started from/],
  [join(top, "tools/bin/deep"), /programs are started from/],
  ["../data", null],
  [join(home, "other/.x"), /begins with a dot/],
  ["~/code/data", null],
  ["build", null],
  [".cache", null],
] as const) {
  test(`allowedPaths ${path.replace(top, "")}: ${why === null ? "control, allowed" : "refused"}`, () => {
    const found = refusePath(path, places);
    if (why === null) assert.equal(found, null);
    else assert.match(String(found), why);
  });
}

test("folders that the project itself lies in do not count", () => {
  const hidden = {
    ...places,
    root: join(home, ".work/p"),
    cwd: join(home, ".work/p"),
    home: join(top, "far"),
  };
  assert.equal(refusePath("../data", hidden), null);
  assert.match(String(refusePath("../.data", hidden)), /begins with a dot/);
  assert.match(String(refusePath(join(home, "x/.work/p"), hidden)), /begins with a dot/);
});
