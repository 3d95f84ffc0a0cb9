/** What is long stays light in the browser: a run of 10,000 entries, thousands of runs, a flow of 1,000 steps. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, CDPSession, Page } from "playwright-core";
import { create, fill, nameOf, open, record } from "../../bench/journal.ts";
import { agentFiles, stepTo, writeFiles } from "../run/project.ts";
import { roundsOf } from "../rounds.ts";
import { until } from "../until.ts";
import { openBrowser, watchedPage, withBrowser } from "./browser.ts";
import { emptyGround, openStudio, type Ground, type Studio } from "./ground.ts";

const LONG = 10_000;
const RUNS = roundsOf(10_000);
const STEPS = 1000;
const MOST_ELEMENTS = 1500;

describe("what is long, in the browser", withBrowser, () => {
  let browser: Browser;
  let ground: Ground;
  let studio: Studio;
  let page: Page;
  let faults: readonly string[];
  let inside: CDPSession;

  before(async () => {
    [browser, ground] = await Promise.all([openBrowser(), emptyGround()]);
    const journal = await open(ground.folder, "state");
    await fill(journal, await record(ground.folder, 8), RUNS);
    await (await create(journal, "long", await record(ground.folder, LONG - 2))).release();
    await journal.close();
    const id = (at: number) => `continuation.s${at}`;
    const chain = Array.from({ length: STEPS - 2 }, (_, at) => [
      id(at),
      stepTo("work", { next: at === STEPS - 3 ? "closure.a" : id(at + 1), repeat: id(Math.max(0, at - 5)) }),
    ]);
    const steps = {
      "initial.a": stepTo("work", { next: id(0) }),
      ...Object.fromEntries(chain),
      "closure.a": stepTo("closure", { closing: null }),
    } as Parameters<typeof agentFiles>[1];
    writeFiles(ground.folder, agentFiles("large", steps));
    studio = await openStudio(ground, "--state", join(ground.folder, "state"));
    ({ page, faults } = await watchedPage(browser));
    inside = await page.context().newCDPSession(page);
    await page.goto(studio.url);
  });
  after(async () => {
    await browser.close();
    await studio.close();
    ground.remove();
  });

  const elements = () => page.evaluate<number>("document.querySelectorAll('*').length");
  const isLight = async (what: string, most = MOST_ELEMENTS) => {
    const count = await elements();
    assert.ok(count <= most, `${what}: ${count} elements`);
  };
  /** Megabytes that are in use after what is not needed was given back. */
  const memory = async () => {
    await inside.send("HeapProfiler.collectGarbage");
    const { usedSize } = await inside.send("Runtime.getHeapUsage");
    return usedSize / 1024 / 1024;
  };

  test("thousands of runs are listed, and the last one can be scrolled to", async () => {
    await page.getByText(/^[\d,]+ runs recorded\.$/).waitFor();
    await isLight("the list");
    const last = page.locator(`#run-${nameOf(0)}`);
    await until(async () => {
      await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
      return (await last.count()) === 1;
    }, "the oldest run is drawn");
    await isLight("the end of the list");
  });

  test("a run of 10,000 entries is drawn, moved through and left, and nothing grows", async () => {
    await page.goto(`${studio.origin}/runs/long`);
    const slider = page.getByLabel("Entry", { exact: true });
    await until(async () => (await slider.getAttribute("max")) === String(LONG), "all entries are there");
    await isLight("the run");
    await slider.focus();
    for (const key of ["Home", "PageUp", "PageUp", "ArrowRight", "ArrowRight", "End", "PageDown"]) {
      await slider.press(key);
      await isLight(`the run after ${key}`);
    }
    const before = await memory();
    for (let round = 0; round < 3; round++) {
      await page.getByRole("link", { name: "Inbox" }).click();
      await page.getByText("Nothing waits for you.").first().waitFor();
      await page.goBack();
      await until(async () => (await slider.getAttribute("max")) === String(LONG), "all entries are there");
    }
    const grown = (await memory()) - before;
    assert.ok(grown < 8, `${grown.toFixed(1)} MB more after three visits, ${before.toFixed(1)} MB before`);
  });

  test("its log and its conversation are read to their end", async () => {
    await page.goto(`${studio.origin}/runs/long/log`);
    const lines = page.getByRole("group", { name: "Lines" });
    await lines.waitFor();
    await until(async () => {
      await page.evaluate("document.querySelector('.lines-box').scrollTo(0, 1e9)");
      const seqs = await lines.getByRole("link").allInnerTexts();
      return Number(seqs.at(-1)) > LONG - 10;
    }, "the last line is drawn");
    await isLight("the log");
    await page.goto(`${studio.origin}/runs/long/talk`);
    await page.getByText("The work goes on.").first().waitFor();
    // A page of 200 utterances.
    await isLight("the conversation", 3000);
  });

  test("a flow of 1,000 steps is drawn around the step that is looked at", async () => {
    await page.goto(`${studio.origin}/flows/large/${id500}`);
    await page.getByText("60 steps of 1,000 are drawn").waitFor();
    assert.equal(await page.locator(`svg a[data-step="${id500}"][aria-current]`).count(), 1);
    await isLight("the flow");
    assert.deepEqual(faults, []);
  });
});

const id500 = "continuation.s500";
