/** What every mail must do. One suite; each implementation runs it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlWish, FoundLetter, Mail } from "../flow/mail.ts";

/** A place without letters, seen from two processes. */
export type MailWorld = {
  /** Of the process that drives the runs. */
  readonly driver: Mail;
  readonly other: Mail;
  /** From now on the driver drives a run of this name. */
  readonly drives: (run: string) => Promise<void>;
  readonly remove: () => Promise<void>;
};

/**
 * Registers the cases with node:test.
 *
 *     mailSuite("files", async () => ({ driver: createFileMail(folder), other: createFileMail(folder), … }));
 */
export function mailSuite(name: string, make: () => Promise<MailWorld>): void {
  describe(`mail: ${name}`, () => {
    for (const [title, body] of Object.entries(CASES))
      it(title, async () => {
        const world = await make();
        try {
          for (const run of ["r1", "r2"]) await world.drives(run);
          await body(world);
        } finally {
          await world.remove();
        }
      });
  });
}

const CASES: { readonly [title: string]: (world: MailWorld) => Promise<void> } = {
  async "an answer is found as it was written, by its run and its question alone"({ driver, other }) {
    const text = JSON.stringify({ answer: 'ünï "quoted" \0 \ud800 line\nbreak', by: "answer" });
    const before = Date.now();
    assert.equal(await other.post("r1", "q1", text), true);
    const found = await driver.find("r1", "q1");
    assert.ok(found !== null && "text" in found, JSON.stringify(found));
    assert.deepEqual(JSON.parse(found.text), JSON.parse(text));
    // Another clock wrote the time, and may be rounded.
    assert.ok(Math.abs(found.at - before) < 600_000, `${found.at}`);
    assert.deepEqual([await driver.find("r1", "q2"), await driver.find("r2", "q1")], [null, null]);
    assert.match(driver.where("r1", "q1"), /q1/);
  },

  async "of many who answer at once, one is taken"({ driver, other }) {
    const posts = Array.from({ length: 8 }, (_, place) =>
      [other, driver][place % 2]!.post("r1", "q", "same"),
    );
    const taken = (await Promise.all(posts)).filter((isTaken) => isTaken);
    assert.equal(taken.length, 1);
    assert.equal(await other.post("r1", "q", "later"), false);
    assert.equal(textOf(await driver.find("r1", "q")), "same");
  },

  async "what was taken in goes away, and only that"({ driver, other }) {
    for (const [run, question] of [
      ["r1", "q1"],
      ["r1", "q2"],
      ["r2", "q1"],
    ] as const)
      await other.post(run, question, `${run} ${question}`);
    await driver.discard("r1", "q1");
    await driver.discard("r1", "q1");
    assert.equal(await driver.find("r1", "q1"), null);
    assert.equal(textOf(await driver.find("r1", "q2")), "r1 q2");
    assert.equal(textOf(await driver.find("r2", "q1")), "r2 q1");
    assert.equal(await other.post("r1", "q1", "again"), true);
  },

  async "a name stands for itself, whatever it holds"({ driver, other, drives }) {
    for (const name of ["..", "../../x", "a/b", "'; DROP TABLE mail; --", "%s", "ü"]) {
      await drives(name);
      assert.equal(await other.post(name, name, "said"), true, name);
      assert.equal(textOf(await driver.find(name, name)), "said", name);
      await other.leaveWish(name, "pause");
      assert.equal(await driver.wishFor(name), "pause", name);
    }
  },

  async "the newest wish stands, until that one is forgotten"({ driver, other }) {
    assert.equal(await driver.wishFor("r1"), null);
    const wishes: readonly ControlWish[] = ["pause", "stop", "continue"];
    for (const wish of wishes) {
      await other.leaveWish("r1", wish);
      assert.equal(await driver.wishFor("r1"), wish);
    }
    assert.equal(await driver.wishFor("r2"), null);
    await driver.forgetWish("r1", "pause");
    assert.equal(await driver.wishFor("r1"), "continue", "it came later than what was heeded");
    await driver.forgetWish("r1", "continue");
    assert.equal(await other.wishFor("r1"), null);
  },

  async "a wish is heard by those who listen for its run, until they do no more"({ driver, other }) {
    const heard: string[] = [];
    const unhear = driver.hearWishes("r1", (wish) => heard.push(`r1 ${wish}`));
    const unhearOther = driver.hearWishes("r2", (wish) => heard.push(`r2 ${wish}`));
    try {
      await other.leaveWish("r1", "stop");
      await heardOf(() => heard.includes("r1 stop"));
      assert.ok(!heard.some((line) => line.startsWith("r2")), heard.join());
      unhear();
      await driver.forgetWish("r1", "stop");
      const soFar = heard.length;
      await other.leaveWish("r1", "pause");
      await other.leaveWish("r2", "pause");
      await heardOf(() => heard.includes("r2 pause"));
      assert.ok(!heard.slice(soFar).some((line) => line.startsWith("r1")), heard.join());
    } finally {
      unhear();
      unhearOther();
    }
  },
};

function textOf(found: FoundLetter | null): string | null {
  return found !== null && "text" in found ? found.text.trim() : null;
}

async function heardOf(holds: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error("the wish was not heard within a minute");
    await delay(5);
  }
}
