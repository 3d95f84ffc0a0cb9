/** Action blocks in what a model said: which are taken, which are refused and why, and that no text breaks the reading. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BLOCK_CAPS, blocksIn, type Block } from "../../src/flow/action-blocks.ts";
import type { JsonObject } from "../../src/flow/json.ts";

const SETTINGS = { types: ["note", "issue-action"], outputFormat: "json" } as const;
const NOTE = '{"type":"note","content":"hi"}';
const fence = (info: string, body: string, mark = "```") => `${mark}${info}\n${body}\n${mark}`;
const note = (content = "hi", metadata: JsonObject = {}) => ({ type: "note", content, metadata });
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

type Row = {
  readonly name: string;
  readonly text: string;
  /** What comes out: an action, or a word of why it is refused. */
  readonly gives: readonly (object | RegExp)[];
  readonly settings?: Parameters<typeof blocksIn>[1];
  readonly answer?: JsonObject;
};

const ROWS: readonly Row[] = [
  { name: "nothing in nothing", text: "", gives: [] },
  { name: "prose", text: "All is well.", gives: [] },
  { name: "a block that names its type", text: `Done.\n\n${fence("json", NOTE)}\n\nBye.`, gives: [note()] },
  {
    name: "a block whose fence is its type",
    text: fence("issue-action", '{"action":"close","issue":3}'),
    gives: [{ type: "issue-action", content: "", metadata: { action: "close", issue: 3 } }],
  },
  { name: "its type said twice", text: fence("note", NOTE), gives: [note()] },
  { name: "tildes", text: fence("json", NOTE, "~~~~"), gives: [note()] },
  { name: "spaces around the info string", text: fence("  json  ", NOTE), gives: [note()] },
  { name: "line ends of another world", text: fence("json", NOTE).replaceAll("\n", "\r\n"), gives: [note()] },
  {
    name: "three spaces from the margin",
    text: fence("json", NOTE).replaceAll(/^/gm, "   "),
    gives: [note()],
  },
  { name: "a closing fence that is longer", text: `\`\`\`json\n${NOTE}\n\`\`\`\`\``, gives: [note()] },
  {
    name: "several, in their order",
    text: [fence("json", NOTE), fence("note", '{"content":"b","x":1}')].join("\n"),
    gives: [note(), note("b", { x: 1 })],
  },
  {
    name: "without outputFormat",
    text: fence("json", NOTE),
    settings: { ...SETTINGS, outputFormat: null },
    gives: [],
  },
  {
    name: "without outputFormat, by its type",
    text: fence("note", "{}"),
    settings: { ...SETTINGS, outputFormat: null },
    gives: [note("")],
  },
  { name: "no info string", text: fence("", NOTE), settings: { ...SETTINGS, outputFormat: "" }, gives: [] },
  {
    name: "one word for format and type",
    text: [fence("action", '{"content":"a"}'), fence("action", '{"type":"note"}')].join("\n"),
    settings: { types: ["action", "note"], outputFormat: "action" },
    gives: [{ type: "action", content: "a", metadata: {} }, note("")],
  },

  // What is shown to somebody and asks for nothing.
  { name: "another language", text: fence("js", NOTE), gives: [] },
  { name: "more than one word after the fence", text: fence("json title=x", NOTE), gives: [] },
  { name: "JSON without a type", text: fence("json", '{"a":1}'), gives: [] },
  { name: "a list", text: fence("json", "[1]"), gives: [] },
  {
    name: "the answer itself",
    text: fence("json", '{"type":"note","next_action":{"action":"next"}}'),
    answer: { next_action: { action: "next" }, type: "note" },
    gives: [],
  },
  {
    name: "an answer that is all of the text",
    text: '{"next_action":{"action":"next"},"type":"note"}',
    answer: { next_action: { action: "next" }, type: "note" },
    gives: [],
  },
  {
    name: "blocks beside an answer",
    text: `${fence("json", '{"a":1}')}\n${fence("json", NOTE)}`,
    answer: { a: 1 },
    gives: [note()],
  },

  // What is quoted.
  { name: "a quotation", text: fence("json", NOTE).replaceAll(/^/gm, "> "), gives: [] },
  { name: "a quotation in a quotation", text: fence("json", NOTE).replaceAll(/^/gm, ">> "), gives: [] },
  { name: "indented code", text: fence("json", NOTE).replaceAll(/^/gm, "    "), gives: [] },
  { name: "indented by a tab", text: fence("json", NOTE).replaceAll(/^/gm, "\t"), gives: [] },
  { name: "inside of a longer fence", text: fence("markdown", fence("json", NOTE), "````"), gives: [] },
  { name: "inside of another kind of fence", text: fence("", fence("json", NOTE), "~~~"), gives: [] },
  { name: "inside of a comment", text: `<!--\n${fence("json", NOTE)}\n-->`, gives: [] },
  { name: "after a comment", text: `<!-- x -->\n${fence("json", NOTE)}`, gives: [note()] },
  { name: "inside of a folded part", text: `<details>\n\n${fence("json", NOTE)}\n\n</details>`, gives: [] },
  {
    name: "inside of a quoting element",
    text: `<BLOCKQUOTE cite="x">\n\n${fence("json", NOTE)}\n</BLOCKQUOTE>`,
    gives: [],
  },
  { name: "an element that never ends", text: `<pre>\n${fence("json", NOTE)}`, gives: [] },
  { name: "an element that only sounds like one", text: `<presto>\n${fence("json", NOTE)}`, gives: [note()] },
  { name: "inline code", text: "```json {} ```", gives: [] },

  // What is wrong.
  { name: "a fence that is not closed", text: `\`\`\`json\n${NOTE}`, gives: [/not closed/] },
  { name: "closed by fewer marks", text: `\`\`\`\`json\n${NOTE}\n\`\`\``, gives: [/not closed/] },
  { name: "closed by other marks", text: `\`\`\`json\n${NOTE}\n~~~`, gives: [/not closed/] },
  { name: "no JSON", text: fence("json", '{"type":"note",}'), gives: [/is not JSON/] },
  { name: "two objects", text: fence("json", `${NOTE}\n${NOTE}`), gives: [/is not JSON/] },
  {
    name: "a type fence without an object",
    text: fence("note", "[]"),
    gives: [/does not contain an object/],
  },
  {
    name: "a type that is not declared",
    text: fence("json", '{"type":"shell"}'),
    gives: [/"shell", which is not among/],
  },
  { name: "a type that is no text", text: fence("json", '{"type":["note"]}'), gives: [/is not a string/] },
  {
    name: "a type that objects inherit",
    text: fence("json", '{"type":"toString"}'),
    gives: [/"toString", which is not among/],
  },
  {
    name: "a fence of one type with another",
    text: fence("note", '{"type":"issue-action"}'),
    gives: [/says that it is of the type "issue-action"/],
  },
  {
    name: "content that is no text",
    text: fence("note", '{"content":{"a":1}}'),
    gives: [/"content".*is not a string/],
  },
  {
    name: "a member that reaches a prototype",
    text: fence("note", '{"__proto__":{"x":1}}'),
    gives: [/a member "__proto__"/],
  },
  {
    name: "such a member further down",
    text: fence("note", '{"a":[{"constructor":1}]}'),
    gives: [/a member "constructor"/],
  },
  { name: "nested too deep", text: fence("note", deep(BLOCK_CAPS.depth + 1)), gives: [/nested deeper/] },
  {
    name: "nested far too deep",
    text: fence("note", `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`),
    gives: [/nested deeper/],
  },
  {
    name: "too long",
    text: fence("note", `{"content":"${"x".repeat(BLOCK_CAPS.bytes)}"}`),
    gives: [/is longer than/],
  },
  {
    name: "too many",
    text: Array.from({ length: BLOCK_CAPS.blocks + 3 }, () => fence("json", NOTE)).join("\n"),
    gives: [...Array.from({ length: BLOCK_CAPS.blocks }, () => note()), /^3 more than the 10 blocks/],
  },
];

describe("what is taken for an action", () => {
  for (const { name, text, gives, settings = SETTINGS, answer } of ROWS) {
    test(name, () => {
      const found = blocksIn(text, settings, answer ?? null);
      assert.equal(found.length, gives.length, JSON.stringify(found));
      for (const [place, block] of found.entries()) assertIs(block, gives[place]!);
    });
  }
});

function assertIs(block: Block, expected: object | RegExp): void {
  if (expected instanceof RegExp) assert.match(block.kind === "refused" ? block.why : "", expected);
  else assert.deepEqual(block.kind === "action" ? block.action : block, expected);
}

/** A small generator of its own: the same texts every time. */
function createChance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const PIECES = [
  "```",
  "````",
  "~~~",
  "~~~~~",
  "`",
  "~",
  ">",
  "> ",
  " ",
  "   ",
  "    ",
  "\t",
  "\n",
  "\n",
  "\n",
  "\r\n",
  "json",
  "note",
  "issue-action",
  NOTE,
  '{"type":"note"}',
  '{"type":',
  '"note"',
  "{",
  "}",
  "[",
  "]",
  ",",
  '"',
  "\\",
  '{"__proto__":1}',
  "<!--",
  "-->",
  "<pre>",
  "</pre>",
  "<details",
  "null",
  "1e999",
  "\u0000",
  "\ud800",
  "\u2028",
  "é",
  "- ",
  "#",
];

test("no text breaks the reading, and every action is one that was declared", () => {
  const chance = createChance(20);
  const before = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));
  let actions = 0;
  let refused = 0;
  for (let round = 0; round < 120_000; round++) {
    const pieces = Array.from({ length: chance(40) }, () => PIECES[chance(PIECES.length)]!);
    const text =
      chance(3) === 0 ? `${fence("json", pieces.join(""))}\n${fence("note", NOTE)}` : pieces.join("");
    for (const block of blocksIn(text, SETTINGS)) {
      if (block.kind === "refused") refused += 1;
      else {
        actions += 1;
        assert.ok(SETTINGS.types.includes(block.action.type as "note"));
        assert.equal(typeof block.action.content, "string");
      }
    }
  }
  assert.ok(actions > 1000 && refused > 1000, `${actions} actions, ${refused} refused`);
  assert.equal(JSON.stringify(Object.getOwnPropertyNames(Object.prototype)), before);
});

/** Work that grows with the square of these would not end within a test run. */
test("texts made to take long are read in one pass", () => {
  const size = 1_000_000;
  const many = (piece: string) => piece.repeat(Math.floor(size / piece.length));
  for (const text of [
    many("`"),
    many("```json\n"),
    many("```json\n{}\n```\n"),
    many("~~~\n```json\n"),
    many("<!--"),
    many("<pre>\n"),
    many("> "),
    many(" "),
    many("\n"),
    `\`\`\`json\n${many("[")}\n\`\`\``,
    `\`\`\`json\n${many('{"a":')}\n\`\`\``,
    `\`\`\`note\n${many("   ```")}`,
  ]) {
    assert.ok(blocksIn(text, SETTINGS).length <= BLOCK_CAPS.blocks + 1);
  }
});
