/** Which addresses of repositories a worker takes from a record, and which patterns of its config match them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANY_REPOSITORY, mayFetch, readRepositoryAddress } from "../../src/run/source-address.ts";

const REFUSED: readonly (readonly [address: string, why: RegExp])[] = [
  ["", /empty/],
  ["--upload-pack=touch /tmp/x", /blanks/],
  ["--upload-pack=x", /begins with -/],
  ["-oProxyCommand=x:y", /begins with -/],
  ["ssh://-oProxyCommand=x/y", /host|address/],
  ["ssh://host/-x/../../etc", /\.\./],
  ["git@-host:repo", /host/],
  ["-u@host:repo", /begins with -/],
  ["host:-x", /path begins with -/],
  ["host:../other", /\.\./],
  ["ext::sh -c touch", /blanks/],
  ["ext::sh", /only https/],
  ["http://example.invalid/a", /only https/],
  ["git://example.invalid/a", /only https/],
  [["https://user", "secret@example.invalid/a"].join(":"), /password/],
  ["https://example.invalid/acme/../evil/a", /\.\./],
  ["https://example.invalid/acme/%2e%2e/evil", /encoded/],
  ["https://example.invalid/acme\\..\\evil", /\\/],
  ["https://example.invalid/a?x", /\?/],
  ["https://example.invalid/a#x", /#/],
  ["file://other-host/a", /another host/],
  ["../a", /not an address/],
  ["/srv/a", /not an address/],
  ["https://example.invalid/a\u001b[2J", /ASCII/],
];

for (const [address, why] of REFUSED)
  test(`${JSON.stringify(address)} is not an address that is fetched from`, () => {
    const read = readRepositoryAddress(address);
    assert.ok("fault" in read, "it was taken");
    assert.match(read.fault, why);
  });

const MATCHES: readonly (readonly [address: string, patterns: readonly string[], may: boolean])[] = [
  ["https://github.com/acme/one.git", ["https://github.com/acme/*"], true],
  ["https://github.com/acme/one", ["https://github.com/acme/one.git"], true],
  ["https://GitHub.com/acme/one", ["https://github.com/acme/*"], true],
  ["https://github.com/acme/one/two", ["https://github.com/acme/*"], false],
  ["https://github.com/acme/one/two", ["https://github.com/acme/**"], true],
  ["https://github.com/acme-evil/one", ["https://github.com/acme/*"], false],
  ["https://github.com.evil.invalid/acme/one", ["https://github.com/acme/*"], false],
  ["https://githubXcom/acme/one", ["https://github.com/acme/*"], false],
  ["git@github.com:acme/one.git", ["ssh://git@github.com/acme/*"], true],
  ["git@github.com:acme/one.git", ["https://github.com/acme/*"], false],
  ["ssh://root@github.com/acme/one", ["ssh://git@github.com/acme/*"], false],
  ["https://github.com/acme/one", [], false],
  ["https://github.com/acme/one", ANY_REPOSITORY, true],
  ["git@github.com:acme/one", ANY_REPOSITORY, true],
  ["file:///srv/one.git", ANY_REPOSITORY, false],
  ["file:///srv/one.git", ["**"], false],
  ["file:///srv/one.git", ["file:///srv/*"], true],
  ["file:///etc/one.git", ["file:///srv/*"], false],
];

for (const [address, patterns, may] of MATCHES)
  test(`${address} is ${may ? "" : "not "}matched by ${JSON.stringify(patterns)}`, () => {
    const read = readRepositoryAddress(address);
    assert.ok(!("fault" in read), "it was refused");
    assert.equal(mayFetch(read, patterns), may);
  });
