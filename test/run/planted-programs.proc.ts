/** Programs of the project are not ours: whatever the PATH says, none that it brought along is started in place of ours. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { programsFor } from "../../src/run/world/programs.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { repository, type Repository } from "./repository.ts";

const NAMES = [
  "git",
  "gh",
  "sh",
  "bash",
  "rg",
  "bwrap",
  "socat",
  "node",
  "ssh",
  "git-lfs",
  "git-upload-pack",
  "sleep",
  "true",
];

/** Each leaves its name. */
function plant(world: Repository, folder: string): void {
  mkdirSync(folder, { recursive: true });
  mkdirSync(join(world.temp, "sprung"), { recursive: true });
  for (const name of NAMES)
    writeFileSync(join(folder, name), `#!/bin/sh\n: > ${world.temp}/sprung/${name}\nexit 1\n`, {
      mode: 0o755,
    });
}

const PLACES: { readonly [name: string]: (world: Repository) => string } = {
  "node_modules/.bin of the project": ({ home }) => join(home, "node_modules/.bin"),
  "node_modules/.bin above the project": ({ temp }) => join(temp, "node_modules/.bin"),
  "a folder of the project": ({ home }) => join(home, "tools"),
  "a folder of worktrees": ({ home }) => join(home, ".worktrees/bin"),
  "a relative folder": () => "tools",
  "no name at all": () => "",
};

describe("programs that the project brought along", () => {
  for (const [name, placeOf] of Object.entries(PLACES)) {
    for (const sandbox of ["off", "on"] as const) {
      test(`${name}, sandbox ${sandbox}`, sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {}, async () => {
        const world = repository();
        const place = placeOf(world);
        world.write(".git/info/exclude", "node_modules\ntools\n.worktrees\n");
        plant(world, join(place.startsWith("/") ? place : join(world.home, place || "tools")));
        world.git(world.home, "remote", "set-url", "origin", "ssh://nobody@127.0.0.1:1/x.git");
        const env = { ...world.env, PATH: `${place}:${world.env.PATH}`, LOCKSTEP_TRUST: "all" };
        // Builtins of the shell only: what a command itself starts is the command's own choice.
        const result = await world.run(["echo new > b.txt"], { env, sandbox, finalize: { push: true } });
        assert.deepEqual(readdirSync(join(world.temp, "sprung")), [], result.reason);
        assert.equal(world.git(world.home, "show", "main:b.txt"), "new", JSON.stringify(result.effects));
      });
    }
  }

  test("neither directly nor through links", () => {
    const world = repository();
    const tools = join(world.home, "tools");
    plant(world, tools);
    const [folder, links] = [join(world.temp, "alias"), join(world.temp, "links")];
    symlinkSync(tools, folder);
    mkdirSync(links);
    for (const name of NAMES) symlinkSync(join(tools, name), join(links, name));
    const PATH = [folder, links, world.env.PATH].join(":");
    const found = programsFor({ PATH }, [join(world.home, ".agent")]);
    assert.deepEqual(found.path.split(":").includes(folder), false);
    for (const [name, path] of Object.entries(found))
      if (name !== "path") assert.ok(path === null || !path.startsWith(world.temp), `${name}: ${path}`);
  });

  test("one that appears later on is not seen", () => {
    const world = repository();
    const bin = join(world.temp, "bin");
    mkdirSync(bin);
    const PATH = `${bin}:${world.env.PATH}`;
    const before = programsFor({ PATH }, [world.home]);
    plant(world, bin);
    assert.deepEqual(programsFor({ PATH }, [world.home]), before);
    assert.equal(
      programsFor({ PATH: `${bin}:/` }, [world.home]).git,
      join(bin, "git"),
      "control: it would be found",
    );
  });
});

test("a folder that only looks like a repository is none for the commands of a model", async () => {
  for (const sandbox of hasBwrap ? (["off", "on"] as const) : (["off"] as const)) {
    const world = repository();
    const trap = join(world.temp, "trap");
    writeFileSync(trap, `#!/bin/sh\ntouch ${world.temp}/PWNED\n`, { mode: 0o755 });
    const bare = `mkdir -p pkg/objects pkg/refs; echo 'ref: refs/heads/main' > pkg/HEAD; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = ${trap}\\n' > pkg/config`;
    const result = await world.run([bare, "cd pkg; git status > ../said 2>&1 || true"], {
      worktree: false,
      sandbox,
    });
    assert.equal(result.outcome, "completed");
    assert.match(world.read("said") ?? "", /safe\.bareRepository/);
    assert.equal(existsSync(join(world.temp, "PWNED")), false);
  }
});
