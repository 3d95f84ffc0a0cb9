import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { createRedactor } from "../../../src/boundaries/redact/redact.ts";
import { secretsIn } from "../../../src/boundaries/redact/secret-names.ts";
import { createCapture } from "../../../src/effects/process/capture.ts";
import { BLOCKS, CARRIED, SHAPES } from "../secrets.ts";
import { assertLinear } from "../../linear.ts";

const plain = createRedactor(() => []);

describe("what has the shape of a key is taken out", () => {
  for (const [name, key] of Object.entries(SHAPES)) {
    test(name, () => {
      const forms = [
        key,
        `x ${key}.`,
        `"${key}"`,
        `KEY=${key}\n`,
        `(${key})`,
        `https://h/?k=${key}&x=1`,
        `\\n${key}`,
        `k%3D${key}%26`,
      ];
      for (const form of forms) {
        const left = plain.text(form);
        assert.ok(!left.includes(key.slice(-12)), left);
        assert.match(left, /\[redacted:[a-z]+\]/);
      }
    });
  }
  for (const [name, before, secret, rest] of CARRIED) {
    test(name, () => assert.equal(plain.text(before + secret + rest), `${before}[redacted]${rest}`));
  }
  for (const key of BLOCKS) {
    test(key.split("\n")[0], () => {
      assert.equal(plain.text(`a\n${key}\nb`), "a\n[redacted:private-key]\nb");
      const escaped = JSON.stringify({ key });
      assert.equal(plain.text(escaped), '{"key":"[redacted:private-key]"}');
      assert.equal(plain.text(key.slice(0, 300)), "[redacted:private-key]");
      const numbered = key.split("\n").map((line, n) => `file:${n + 1}:\t${line}`);
      assert.equal(plain.text(numbered.join("\n")), "file:1:\t[redacted:private-key]");
      assert.equal(plain.text(key.replaceAll("\n", " ")), "[redacted:private-key]");
    });
  }
  test("and what is left is not touched again", () => {
    const once = plain.text([...Object.values(SHAPES), ...BLOCKS].join("\n"));
    assert.equal(plain.text(once), once);
  });
});

describe("what only looks like one stays", () => {
  const innocent = [
    "task-manager-for-busy-people-with-long-names",
    "class sk-folding-cube-container-wrapper",
    "npm_config_registry npm_lifecycle_event npm_package_version",
    "const ghp_ = 1; // ghp_short",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "0b9c2625-dc21-ef05-f6ad-4ddf47c5f203837aa32c",
    "AKIA is how an AWS access key begins",
    "-----BEGIN PRIVATE KEY-----",
    'if (line.startsWith("-----BEGIN RSA PRIVATE KEY-----")) return',
    "-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUJlq+zz9CO2E91rlD4vhWX1XCqiQwDQYJKoZIhvcNAQEL\n-----END CERTIFICATE-----",
    "postgres://localhost:5432/app",
    "postgres://user:${PASSWORD}@host/db",
    "postgres://user:<password>@host/db",
    "http://example.com:8080/@scope/package",
    "git@github.com:owner/name.git",
    "Bearer authentication is required for this endpoint",
    "The Basic plan includes authorization",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "eyJhbGciOiJub25lIn0",
    "SKILLS SKELETON SKU12345678",
    "at Object.<anonymous> (/home/me/project/node_modules/some-package/dist/index.js:10:15)",
    "resolved https://registry.npmjs.org/@types/node/-/node-24.0.0.tgz",
  ];
  for (const one of innocent)
    test(JSON.stringify(one.slice(0, 50)), () => assert.equal(plain.text(one), one));

  test("our own sources", () => {
    const root = new URL("../../../", import.meta.url).pathname;
    for (const file of globSync("{src,test,docs,examples}/**/*.{ts,md,json,yaml}", { cwd: root })) {
      const content = readFileSync(root + file, "utf8");
      if (!/^test\/(?:boundaries\/redact|fixtures\/findings)/.test(file))
        assert.equal(plain.text(content), content, file);
    }
  });
});

describe("a known value is taken out", () => {
  const value = 'pässword "with"/odd+chars\\ 1';
  const { text } = createRedactor(() => [value, "plain-value-77"]);
  const bytes = Buffer.from(value);
  const cases: { readonly [form: string]: string } = {
    "as it is": value,
    "in JSON": JSON.stringify({ a: value }),
    "in an address": `https://h/?p=${encodeURIComponent(value)}`,
    "in an address, with small letters": encodeURIComponent(value)
      .toLowerCase()
      .replaceAll("%22with", "%22with"),
    "in base64": bytes.toString("base64"),
    "in base64, behind one byte": Buffer.concat([Buffer.from("x"), bytes, Buffer.from("tail")]).toString(
      "base64",
    ),
    "in base64, behind a name": Buffer.from(`user:${value}`).toString("base64"),
    "in base64 for addresses": bytes.toString("base64url"),
    "in hexadecimal": bytes.toString("hex"),
    "another one": "x=plain-value-77;",
  };
  for (const [form, whole] of Object.entries(cases)) {
    test(form, () => assert.match(text(`before ${whole} after`), /^before .*\[redacted\].* after$/));
  }
  test("in keys and values of any depth, and nothing else changes", () => {
    const { value: tidy } = createRedactor(() => ["plain-value-77"]);
    const clean = { a: ["b", { c: 1, d: null }], e: "long enough to be looked at" };
    assert.equal(tidy(clean), clean);
    assert.deepEqual(tidy({ ...clean, x: [{ "key plain-value-77": "v plain-value-77", n: 2 }] }), {
      ...clean,
      x: [{ "key [redacted]": "v [redacted]", n: 2 }],
    });
  });
  test("also where names reach into the machinery of objects", () => {
    const { value: tidy } = createRedactor(() => ["plain-value-77"]);
    const odd = JSON.parse('{"__proto__":{"a":"plain-value-77"},"constructor":"plain-value-77"}') as object;
    assert.equal(JSON.stringify(tidy(odd)), '{"__proto__":{"a":"[redacted]"},"constructor":"[redacted]"}');
    assert.equal(({} as { a?: string }).a, undefined);
  });
});

describe("which variables hold secrets", () => {
  const secret = "s3cr3t-value";
  const names =
    "ANTHROPIC_API_KEY OPENAI_APIKEY GH_TOKEN GITHUB_PAT AWS_SECRET_ACCESS_KEY DB_PASSWORD PGPASSWORD MY_PASS SESSION_COOKIE SENTRY_DSN NPM_CONFIG__AUTH token APP_CREDENTIALS ENCRYPTION_KEY_2 GPG_PASSPHRASE";
  for (const name of names.split(" "))
    test(name, () => assert.deepEqual(secretsIn({ [name]: secret }), [secret]));
  const others = "PATH HOME PWD OLDPWD KEYBOARD_LAYOUT TOKENIZERS PASSAGE GIT_AUTHOR_NAME COMPASS";
  for (const name of others.split(" "))
    test(`not ${name}`, () => assert.deepEqual(secretsIn({ [name]: secret }), []));
  const values = ["", "short", "/run/user/1000/agent", "~/key.pem", "true", "disabled", "1234567890"];
  for (const value of values) {
    test(`not the value ${JSON.stringify(value)}`, () => assert.deepEqual(secretsIn({ MY_KEY: value }), []));
  }
});

describe("in the output of a command", () => {
  const key = SHAPES["GitHub, personal"]!;
  test("however it comes in", () => {
    for (const size of [1, 2, 7, 13, 40]) {
      const capture = createCapture(10_000, plain.text);
      const whole = Buffer.from(`before ${key} after`);
      for (let at = 0; at < whole.length; at += size) capture.write(whole.subarray(at, at + size));
      assert.equal(capture.text(), "before [redacted:github] after");
    }
  });

  test("wherever the output is cut", () => {
    for (let before = 0; before < 120; before += 1) {
      for (const length of [200, 40_000]) {
        const capture = createCapture(100, plain.text);
        const filler = "-".repeat(before);
        capture.write(Buffer.from(`${filler} ${key} ${"=".repeat(length)} ${key} ${filler}`));
        const left = capture.text();
        assert.ok(!left.includes(key.slice(4, 14)) && !left.includes(key.slice(-10)), left);
      }
    }
  });
});

test("no text makes it slow: the work is in proportion to its length", async () => {
  const evil = [
    "a",
    "sk-",
    "-eyJ",
    "_eyJ",
    "-eyJabcdefghijk.eyJ",
    "-eyJ.eyJ-",
    "a://b",
    "http://x:",
    "Bearer ",
    "-----BEGIN PRIVATE KEY-----\n",
    "aws_secret_access_key=",
    "%00",
    "1:AA",
    "\\",
    "\\\\\\\\u",
    "%4",
    "%41",
    "&#",
    "\u001b[",
    "\u001b[1;",
    "\u001b]8;;",
    "\n",
    "\r\n \t",
    "\na:1",
    "\nab\n",
    "host=a;",
    "authorization: basic ",
    "x-api-key: ",
    "plain-v",
    "\u200b",
  ];
  const { text, stream } = createRedactor(() => ["plain-value-77", "another one that is known"]);
  for (const piece of evil) {
    await assertLinear(plain.text, piece);
    await assertLinear(text, piece);
    const inParts = (whole: string) => {
      const parts = stream();
      for (let at = 0; at < whole.length; at += 2_000) parts.write(whole.slice(at, at + 2_000));
      parts.end();
    };
    // Up to so much of a text without a space is held back, and looked at again with each part.
    await assertLinear(inParts, piece, "", 8_000);
  }
});

const letters = (length: number) => "Zm9vYmFyIHF1eCBjb3JnZQ".repeat(length).slice(0, length);
const SLOW_SECRETS: readonly (readonly [name: string, text: string])[] = [
  [
    "a token whose first part is longer than what is held back",
    `eyJ${letters(300)}.eyJ${letters(40)}.${letters(40)}`,
  ],
  [
    "a private key with what looks like another key in it",
    // Written apart, so that no tool takes it for a key.
    ["-----BEGIN RSA PRIVATE", ` KEY-----\n${letters(64)}\n${["ghp", letters(36)].join("_")}\n`].join("") +
      `${`${letters(64)}\n`.repeat(6)}-----END RSA PRIVATE KEY-----`,
  ],
];
for (const [name, secret] of SLOW_SECRETS) {
  test(`nothing of a secret that comes letter by letter is given before it is whole: ${name}`, () => {
    const parts = createRedactor(() => []).stream();
    const given = Array.from(secret, (letter) => parts.write(letter)).join("");
    assert.equal(given, "");
    assert.match(parts.write(" ") + parts.end(), /^\[redacted:[a-z-]+\] $/);
  });
}

test("a value that is learned later is taken out from then on", () => {
  const redactor = createRedactor(() => []);
  const secret = "plain words of a key";
  assert.equal(redactor.text(`so: ${secret}`), `so: ${secret}`);
  assert.deepEqual(redactor.value({ [secret]: 1 }), { [secret]: 1 });
  redactor.learn(secret);
  assert.deepEqual(redactor.value({ [secret]: 1 }), { "[redacted]": 1 });
  assert.equal(redactor.text(`so: ${secret}`), "so: [redacted]");
  assert.doesNotMatch(redactor.text(encodeURIComponent(secret)), /plain/);
});
