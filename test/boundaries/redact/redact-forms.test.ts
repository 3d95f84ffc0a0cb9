/** Known values in other forms, headers, names of variables, and texts that come in parts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createRedactor } from "../../../src/boundaries/redact/redact.ts";
import { credentialsIn, secretsIn, secretValues } from "../../../src/boundaries/redact/secret-names.ts";
import { BLOCKS, CARRIED, SHAPES } from "../secrets.ts";

const plain = createRedactor(() => []);
const LONG = "Zq7-wN4.tK9_xB2/mV6+pR3=hJ8:cD1!sG5 fL0~yU7-eT4.kA9_oC2/iX6ä";
const bytes = Buffer.from(LONG);
const each = (text: string, write: (character: string, byte: string) => string) =>
  Array.from(text, (character) =>
    write(character, character.codePointAt(0)!.toString(16).padStart(2, "0")),
  ).join("");
const wrapped = (text: string, width: number, end = "\n") =>
  text.match(new RegExp(`.{1,${width}}`, "g"))!.join(end);
const percent = (hex: string) => hex.replaceAll(/../g, "%$&");

describe("a long value is taken out, however it is written", () => {
  const { text } = createRedactor(() => [LONG, "other-value-1"]);
  const base64 = bytes.toString("base64");
  const forms: { readonly [name: string]: string } = {
    "base64 of 76": wrapped(base64, 76),
    "base64 of 64": wrapped(base64, 64),
    "base64 of 64, CRLF": wrapped(base64, 64, "\r\n"),
    "base64 of 19": wrapped(base64, 19),
    "base64 of 9": wrapped(base64, 9),
    "base64 of 5, CRLF": wrapped(base64, 5, "\r\n"),
    "base64 in lines that are indented": wrapped(base64, 40, "\n    "),
    "base64 in numbered lines": wrapped(base64, 60, "\n     7\t"),
    "base64 in lines that were found": wrapped(base64, 60, "\nkeys/a.txt:12:"),
    "base64 behind a name, wrapped": wrapped(Buffer.from(`x-user:${LONG}`).toString("base64"), 64),
    "base64 in JSON, wrapped": JSON.stringify(wrapped(base64, 64)),
    "base64 for addresses, wrapped": wrapped(bytes.toString("base64url"), 64),
    "base64 in an address": encodeURIComponent(base64),
    "hexadecimal, upper case": bytes.toString("hex").toUpperCase(),
    "hexadecimal, wrapped": wrapped(bytes.toString("hex"), 60),
    "every character percent-encoded": percent(bytes.toString("hex")),
    "every character percent-encoded, upper case": percent(bytes.toString("hex").toUpperCase()),
    "escapes of JSON": each(LONG, (_, byte) => `\\u00${byte}`),
    "escapes of JSON, upper case": each(LONG, (_, byte) => `\\u00${byte.toUpperCase()}`),
    "escapes of JavaScript": each(LONG, (_, byte) => `\\x${byte}`),
    "escapes with braces": each(LONG, (_, byte) => `\\u{${byte}}`),
    "a single escape": LONG.replace("N", "\\u004e"),
    "decimal entities": each(LONG, (character) => `&#${character.codePointAt(0)};`),
    "hexadecimal entities": each(LONG, (_, byte) => `&#x${byte};`),
    "octal escapes": each(LONG, (character) => `\\${character.codePointAt(0)!.toString(8).padStart(3, "0")}`),
    "colours inside": each(LONG, (character) => `\u001b[31m${character}\u001b[0m`),
    "one colour inside": `${LONG.slice(0, 20)}\u001b[1;31m${LONG.slice(20)}`,
    "a link inside": `${LONG.slice(0, 5)}\u001b]8;;https://x\u0007${LONG.slice(5)}`,
    "signs without width inside": each(LONG, (character) => `${character}\u200b`),
    "soft hyphens inside": LONG.split("-").join("\u00ad-"),
    "broken into lines": wrapped(LONG, 24),
  };
  for (const [form, whole] of Object.entries(forms)) {
    test(form, () => {
      assert.match(text(`before ${whole} after`), /^before .{0,12}\[redacted\].{0,12} after$/s);
      assert.match(
        text(JSON.stringify({ a: `before ${whole} after` })),
        /^\{"a":"before .*\[redacted\].* after"\}$/,
      );
    });
  }

  const others = [
    "%41%42 is AB, &amp; is &, \\u0041 is A, \\x41 too",
    `\u001b[31mred\u001b[0m and ${"QUJD\n".repeat(40)}`,
    "a\u200bb c\u00add",
    ["alpha", "beta", "gamma", "delta"].join("\n"),
    `${base64.slice(0, 12)}\n${base64.slice(0, 12)}`,
  ];
  for (const other of others)
    test(`${JSON.stringify(other.slice(0, 30))} stays`, () => assert.equal(text(other), other));

  test("what stands around it stays as it is written", () => {
    const around = (inside: string) => `%41 \u001b[1m&amp;\u001b[0m ${inside} \\u0041\n&lt;\n%42`;
    assert.equal(text(around(forms["escapes of JSON"]!)), around("[redacted]"));
  });

  test("the shape of a key is seen through it as well", () => {
    const key = SHAPES["GitHub, personal"]!;
    for (const written of [
      each(key, (_, byte) => `\\u00${byte}`),
      each(key, (_, byte) => `%${byte}`),
      each(key, (character) => `&#${character.codePointAt(0)};`),
      each(key, (character) => `${character}\u001b[31m`).slice(0, -5),
      `${key.slice(0, 9)}\u200b${key.slice(9)}`,
    ])
      assert.equal(plain.text(`x ${written} y`), "x [redacted:github] y");
  });
});

describe("a header is taken out in any case", () => {
  const key = "dXNlcjpwYXNzd29yZDEyMzQ1Njc4OTA";
  const headers = [
    "authorization: basic ",
    "AUTHORIZATION: basic ",
    "Authorization: Basic ",
    "AuThOrIzAtIoN: bAsIc ",
    "\textraheader = AUTHORIZATION: basic ",
    'AUTHORIZATION="bearer ',
    '"Authorization": "token ',
    "authorization: BEARER ",
    "Authorization: ",
    "authorization: ApiKey ",
    "X-Api-Key: ",
    'x-auth-token":"',
    "PRIVATE-TOKEN: ",
  ];
  for (const before of headers) {
    test(JSON.stringify(before), () =>
      assert.equal(plain.text(`${before}${key}==\n`), `${before}[redacted]\n`),
    );
  }
  const innocent = [
    "authorization: basic authentication is used",
    "AUTHORIZATION: bearer tokens are required",
    "const authorization = createAuthorization2(request);",
    "headers: { authorization: headersOf(request).authorization2 }",
    "Authorization: Bearer ${TOKEN_2024}",
    "authorization: token YOUR-TOKEN",
    "x-api-key: the key of your account",
    "Server=db;User=sa;Password=${DB_PASSWORD};",
    "host=localhost; password=<secret>",
    "password=hunter2 is not a good one",
  ];
  for (const one of innocent) test(`${JSON.stringify(one)} stays`, () => assert.equal(plain.text(one), one));

  test("a password among the pairs of a connection string", () => {
    const pairs = (password: string) => `Server=tcp:db,1433;User ID=sa;Password=${password};Encrypt=True;`;
    assert.equal(plain.text(pairs("S3cr3t-Passw0rd")), pairs("[redacted]"));
  });
});

describe("which variables hold secrets, and which do not", () => {
  const secret: readonly (readonly [name: string, value: string])[] = [
    ["MY_JWT", "header-payload-signature-1"],
    ["APP_SESSION", "a8f3k2m9d7s6q1w4"],
    ["PHPSESSID_SESSION_ID", "a8f3k2m9d7s6q1w4"],
    ["STRIPE_SK", "opaque-1-value"],
    ["DEPLOY_PRIVATEKEY", "opaque-1-value"],
    ["PRIVATE_KEY", "opaque-1-value"],
    ["SSH_PASSPHRASE", "correcthorsebattery"],
    ["DB_PASSWORD", "correcthorsebattery"],
    ["DB_PASSWORD", "8237461290"],
    ["VAULT_PIN", "8237461290"],
    ["ADMIN_TOKEN", "qwhfkzmplvxy"],
    ["SESSION_COOKIE", "s3cr3t-value"],
    ["SENTRY_DSN", "s3cr3t-value-2"],
    ["DB_CONNECTION_STRING", "Server=x;Uid=y;Pwd=s3cr3t-value"],
  ];
  for (const [name, value] of secret)
    test(`${name}=${value}`, () => assert.ok(secretsIn({ [name]: value }).includes(value)));

  const harmless: readonly (readonly [name: string, value: string])[] = [
    ["DESKTOP_SESSION", "ubuntu-xorg-2404"],
    ["XDG_SESSION_ID", "c2-a8f3k2m9d7s6q1"],
    ["TERM_SESSION_ID", "w0t0p0:8C9E8F7A-1B2C"],
    ["SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/2034"],
    ["AUTH_PROVIDER", "keycloak"],
    ["TOKEN_EXPIRY", "86400000000"],
    ["DB_PASSWORD", "postgres"],
    ["DB_PASSWORD", "password"],
    ["DB_PASSWORD", "disabled"],
    ["API_KEY", "your-api-key-here"],
    ["API_KEY", "development"],
    ["MY_TOKEN", "1234567890"],
    ["MY_TOKEN", "0000000000000"],
    ["MY_TOKEN", "9876543210"],
    ["MY_TOKEN", "aabbccddaabbcc"],
    ["RECONSTRUCTION_MODE", "opaque-1-value"],
    ["CONNECTION_STRATEGY", "opaque-1-value"],
    ["MY_TOKEN", "/run/secrets/token"],
    ["TOKENIZERS_PARALLELISM", "false-or-true"],
    ["SSH_AUTH_SOCK", "unix:agent.1234"],
    ["DATABASE_URL", "postgres://localhost:5432/app"],
    ["DATABASE_URL", "postgres://postgres:postgres@localhost/app"],
  ];
  for (const [name, value] of harmless)
    test(`not ${name}=${value}`, () => assert.deepEqual(secretsIn({ [name]: value }), []));

  test("the password of an address, whatever the variable is called", () => {
    const env = {
      DATABASE_URL: "postgres://app:pa%2Fss-w0rd@db/app",
      HTTP_PROXY: "http://me:pr0xy-pass@proxy:8080",
    };
    assert.deepEqual(secretsIn(env), ["pa%2Fss-w0rd", "pa/ss-w0rd", "pr0xy-pass", "pr0xy-pass"]);
  });
  test("a header in a variable, and what it is made of", () => {
    const token = "x-access-token:plainlookingtoken";
    const header = `AUTHORIZATION: basic ${Buffer.from(token).toString("base64")}`;
    const expected = [Buffer.from(token).toString("base64"), "plainlookingtoken"];
    assert.deepEqual(secretsIn({ GIT_CONFIG_VALUE_0: header }), expected);
    assert.deepEqual(credentialsIn(`[http "https://h/"]\n\textraheader = ${header}\n`), expected);
  });
  test("one that is named as a key's place counts whatever it looks like, but for plain words", () => {
    const env = { A: "onlyletters", B: "12345678901", C: "disabled", D: "/etc/key" };
    assert.deepEqual(secretValues(["A", "B", "C", "D", "E"], env).filter(Boolean), [
      "onlyletters",
      "12345678901",
    ]);
  });
});

describe("a text that comes in parts", () => {
  const known = "correct horse battery staple/7";
  const redactor = createRedactor(() => [known, LONG]);
  const inParts = (whole: string, cuts: readonly number[]) => {
    const stream = redactor.stream();
    const parts: string[] = [];
    let from = 0;
    for (const cut of [...cuts, whole.length]) {
      parts.push(stream.write(whole.slice(from, cut)));
      from = cut;
    }
    return [...parts, stream.end()].join("");
  };
  const filler = "some words that are said before it, and behind it, in lines\nof a text. ".repeat(6);
  const secrets: { readonly [name: string]: string } = {
    ...Object.fromEntries(Object.entries(SHAPES).slice(0, 25)),
    ...Object.fromEntries(CARRIED.map(([name, ...parts]) => [name, parts.join("")])),
    "a known value": known,
    "a known value in base64, wrapped": wrapped(bytes.toString("base64"), 64),
    "a known value in escapes": each(LONG, (_, byte) => `\\u00${byte}`),
    "a known value in colours": each(LONG, (character) => `\u001b[31m${character}\u001b[0m`),
    "a known value, percent-encoded": percent(bytes.toString("hex")),
    "a block": BLOCKS[0]!,
  };
  for (const [name, secret] of Object.entries(secrets)) {
    test(`${name}, cut at every place`, () => {
      const whole = `${filler} ${secret} ${filler}`;
      const expected = redactor.text(whole);
      assert.notEqual(expected, whole);
      const start = filler.length + 1;
      for (let cut = start; cut <= start + secret.length; cut += secret.length > 400 ? 7 : 1)
        assert.equal(inParts(whole, [cut]), expected);
      for (const size of secret.length > 400 ? [17, 64] : [1, 17])
        assert.equal(
          inParts(
            whole,
            Array.from({ length: Math.floor(whole.length / size) }, (_, n) => n * size),
          ),
          expected,
        );
    });
  }

  test("nothing of a plain text is lost or changed, and little of it is held back", () => {
    const texts = [
      filler,
      "",
      "x",
      "no end of a line",
      "日本語のテキスト。".repeat(200),
      "😀".repeat(300),
      "a".repeat(12_000),
    ];
    for (const whole of texts) {
      for (const size of [3, 999]) {
        const stream = redactor.stream();
        let given = "";
        for (let at = 0; at < whole.length; at += size) {
          given += stream.write(whole.slice(at, at + size));
          assert.ok(whole.startsWith(given));
          const held = at + size - given.length;
          assert.ok(held <= (whole.startsWith("aaa") ? 10_000 : 400) + size, `${held} held back`);
        }
        assert.equal(given + stream.end(), whole);
      }
    }
  });

  test("no part is half of a character", () => {
    const stream = redactor.stream();
    const whole = "😀x".repeat(400);
    for (const part of Array.from(whole, (one) => stream.write(one))) assert.ok(part.isWellFormed());
  });
});
