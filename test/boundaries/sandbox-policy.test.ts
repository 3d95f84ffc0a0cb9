/** Which folders a project may open for writing: none that a program outside would obey later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refusePath } from "../../src/boundaries/sandbox-policy.ts";

const places = {
  cwd: "/srv/me/work/project",
  root: "/srv/me/work/project",
  agentsDir: "/srv/me/work/project/.agent",
  stateDir: "/srv/me/work/project/.lockstep",
  configDir: "/srv/me/.config/lockstep",
  home: "/srv/me",
  path: "/srv/me/.local/bin:/srv/tools/bin:relative:/usr/bin",
};

const CASES: readonly (readonly [path: string, why: RegExp | null])[] = [
  ["../other", null],
  ["out", null],
  ["~/data", null],
  ["~/.cache/pip", null],
  ["/srv/elsewhere", null],
  ["~/.cache", /hidden folders of your home/],
  ["~/.local/bin", /programs are looked for in/],
  ["~/.local", /programs are looked for in/],
  ["/srv/tools/bin", /programs are looked for in/],
  ["/srv/tools", /programs are looked for in/],
  ["~/bin", /programs of yours/],
  ["~/.config/systemd", /hidden folders of your home/],
  ["~/.config/fish", /hidden folders of your home/],
  ["~/.bashrc.d", /hidden folders of your home/],
  ["~/work/.git/hooks", /hidden folders of your home/],
  ["../../.config/autostart", /hidden folders of your home/],
  ["~/.ssh", /never see/],
  ["~/.config/lockstep", /settings and what you trust/],
  ["~", /home folder lies in it/],
  ["/etc/cron.d", /belongs to the system/],
  ["..", /project lies in it|record of runs/],
];

for (const [path, why] of CASES) {
  test(`${path}: ${why === null ? "may be opened" : "is refused"}`, () => {
    const refused = refusePath(path, places);
    if (why === null) assert.equal(refused, null);
    else assert.match(refused ?? "it is not refused", why);
  });
}
