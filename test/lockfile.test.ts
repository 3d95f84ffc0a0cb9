/** package-lock.json: what is installed is pinned by its content, and no file says which registry it comes from. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

type Entry = {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
};

const text = readFileSync(new URL("../package-lock.json", import.meta.url), "utf8");
const { packages } = JSON.parse(text) as { readonly packages: { readonly [path: string]: Entry } };
const installed = Object.entries(packages).filter(([path, { link }]) => path !== "" && link !== true);

/** A tool for another platform than the one that builds and tests run on, which is never installed there. */
function isElsewhere({ dev, optional, os, cpu, libc }: Entry): boolean {
  const isHere =
    (os ?? ["linux"]).includes("linux") &&
    (cpu ?? ["x64"]).includes("x64") &&
    (libc ?? ["glibc"]).includes("glibc");
  return dev === true && optional === true && !isHere;
}

test("every entry has the digest of its content", () => {
  const bare = installed.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ""));
  const others = bare.filter(([, entry]) => !isElsewhere(entry));
  assert.deepEqual(
    others.map(([path]) => path),
    [],
    "fill them in with: node scripts/lockfile.mjs --integrity",
  );
  // Tools of other platforms, which the registry in use does not offer. There may only be fewer of them.
  assert.ok(bare.length <= 52, `${bare.length} entries of other platforms have none`);
});

test("what a user installs is pinned without exception", () => {
  const shipped = installed.filter(([, { dev }]) => dev !== true);
  assert.ok(shipped.length > 10);
  for (const [path, { integrity }] of shipped) assert.match(integrity ?? "", /^sha512-/, path);
});

test("no entry says where it comes from", () => {
  assert.doesNotMatch(
    text,
    /"resolved":|https?:\/\/(?!(?:opencollective|github|www\.patreon|feross|paulmillr)[./])[^"]*\.tgz/,
  );
});
