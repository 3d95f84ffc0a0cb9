import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { clipCaptured, createCapture } from "../../../src/effects/process/capture.ts";

describe("a capture", () => {
  test("keeps everything up to its limit, however it comes in", () => {
    for (const size of [1, 3, 7, 1_000]) {
      const capture = createCapture(100);
      const text = "0123456789".repeat(10);
      for (let at = 0; at < text.length; at += size) capture.write(Buffer.from(text.slice(at, at + size)));
      assert.equal(capture.text(), text);
      assert.equal(capture.truncated(), false);
    }
  });

  test("keeps head and tail beyond it, and says how much is missing", () => {
    for (const size of [1, 3, 7, 5_000]) {
      const capture = createCapture(10);
      const text = `abcde${"x".repeat(3_000)}vwxyz`;
      for (let at = 0; at < text.length; at += size) capture.write(Buffer.from(text.slice(at, at + size)));
      assert.equal(capture.text(), "abcde\n[… 3000 bytes cut …]\nvwxyz");
      assert.equal(capture.text(), capture.text());
      assert.equal(capture.truncated(), true);
    }
  });

  test("does not leave half a character at the cut", () => {
    for (let limit = 2; limit < 40; limit += 1) {
      const kept = clipCaptured("äöü→🙂".repeat(20), limit);
      assert.doesNotMatch(kept, /\uFFFD/, `limit ${limit}`);
    }
  });

  test("cuts only what is longer, and only what the cut itself broke", () => {
    assert.equal(clipCaptured("abcd", 4), "abcd");
    assert.equal(clipCaptured("abcde", 4), "ab\n[… 1 bytes cut …]\nde");
    // These stood in the text before.
    const [before, after] = ["\uFFFDab", "a\uFFFDb"];
    assert.equal(
      clipCaptured(`${before}${"x".repeat(20)}${after}`, 10),
      `${before}\n[… 20 bytes cut …]\n${after}`,
    );
  });

  test("of nothing keeps nothing", () => {
    assert.equal(createCapture(10).text(), "");
    assert.equal(clipCaptured("abc", 0), "\n[… 3 bytes cut …]\n");
  });
});
