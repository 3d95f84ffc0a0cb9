/** Texts that GitHub would obey: closing words of other issues, mentions, commands to bots. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { foreignClosings, quietText } from "../../../src/effects/github/github-outgoing.ts";
import { assertLinear } from "../../linear.ts";

const OWN = { issue: 12, owner: "octo", repo: "demo", mentions: false };
const quiet = (text: string) => quietText(text, OWN);

const KEYWORDS = "close closes closed fix fixes fixed resolve resolves resolved".split(" ");
const REFERENCES: { readonly [reference: string]: string } = {
  "#99": "#\u200b99",
  "GH-99": "GH-\u200b99",
  "gh-99": "gh-\u200b99",
  "victim/other#7": "victim/other#\u200b7",
  "victim/other#12": "victim/other#\u200b12",
  "https://github.com/o/r/issues/7": "https://github.com/o/r/issues/\u200b7",
  "http://github.example.com/o/r/pull/7": "http://github.example.com/o/r/pull/\u200b7",
};

describe("a closing word for another issue is broken", () => {
  for (const keyword of KEYWORDS) {
    test(keyword, () => {
      for (const word of [keyword, keyword.toUpperCase(), keyword[0]!.toUpperCase() + keyword.slice(1)]) {
        for (const [reference, broken] of Object.entries(REFERENCES)) {
          for (const between of [
            " ",
            ": ",
            ":",
            "  ",
            "\n",
            "\u00a0",
            " issue ",
            " **",
            " [",
            " <b>",
            " <!-- x --> ",
            " - ",
            "** ",
          ])
            assert.equal(quiet(`It ${word}${between}${reference} now`), `It ${word}${between}${broken} now`);
        }
      }
    });
  }
  test("each of several, and only those", () => {
    assert.equal(
      quiet("Closes #99, fixes #12; resolves #100. See #3."),
      "Closes #\u200b99, fixes #12; resolves #\u200b100. See #3.",
    );
  });
  test("entities do not stand in for signs", () => {
    assert.equal(quiet("Closes &#35;99"), "Closes &amp;#\u200b35;99");
    assert.equal(quiet("Closes &num;99 &commat;all"), "Closes &amp;num;99 &amp;commat;all");
    assert.equal(quiet("Clos&#101;s #99"), "Clos&amp;#101;s #99");
  });
});

describe("what stays as it is", () => {
  const harmless = [
    "Closes #12",
    "fixes: #12",
    "Resolved octo/demo#12",
    "resolves https://github.com/Octo/Demo/issues/12",
    "See #99, and victim/other#7.",
    "It closes the file descriptor 99.",
    "This fixes the bug of #99",
    "A prefix#99 and a disclosed #99",
    "mail me@example.com or a.b@c.de",
    "in /usr/bin and a/b",
    "/usr/bin is a folder",
    "R&D &lt;tag&gt;",
    "",
  ];
  for (const text of harmless) test(JSON.stringify(text), () => assert.equal(quiet(text), text));
});

describe("people and bots are not called", () => {
  const cases: { readonly [text: string]: string } = {
    "@ann please look": "@\u200bann please look",
    "cc @octo/team, @bob.": "cc @\u200bocto/team, @\u200bbob.",
    "@dependabot merge": "@\u200bdependabot merge",
    "(@x)": "(@\u200bx)",
    "/approve": "\u200b/approve",
    "Done.\n/merge squash\n> /lgtm": "Done.\n\u200b/merge squash\n> \u200b/lgtm",
  };
  for (const [text, broken] of Object.entries(cases)) {
    test(JSON.stringify(text), () => {
      assert.equal(quiet(text), broken);
      assert.equal(quietText(text, { ...OWN, mentions: true }), text);
    });
  }
});

test("a run without an issue closes none", () => {
  assert.deepEqual(
    foreignClosings("Closes #12", { ...OWN, issue: null }).map(({ said }) => said),
    ["Closes #12"],
  );
});

test("no text makes it slow: the work is in proportion to its length", async () => {
  for (const piece of [
    "closes ",
    "closes <",
    "closes <b>",
    "fix &a;",
    "closes #",
    "a/",
    "@",
    "\n/a",
    "closes issue ",
  ])
    await assertLinear(quiet, piece);
});
