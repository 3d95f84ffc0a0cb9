/** One run in a real browser: its visits, its moments, its conversation and its log, with a pointer and with keys alone. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { until } from "../until.ts";
import { openBrowser, watchedPage, withBrowser, type Watched } from "./browser.ts";
import { fullGround, openStudio, type FullGround, type Studio } from "./ground.ts";

describe("the page of a run", withBrowser, () => {
  let browser: Browser;
  let ground: FullGround;
  let studio: Studio;
  let watched: Watched;
  let page: Page;

  before(async () => {
    [browser, ground] = await Promise.all([openBrowser(), fullGround()]);
    studio = await openStudio(ground);
    watched = await watchedPage(browser);
    page = watched.page;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.goto(studio.url);
    await page.locator("main h1").waitFor();
  });
  after(async () => {
    await browser.close();
    await studio.close();
    ground.remove();
  });

  const open = async (rest: string) => {
    await page.goto(`${studio.origin}/runs/${ground.runs.fixed}${rest}`);
    await page.locator("main h1").waitFor();
  };
  const address = () => {
    const { pathname, search } = new URL(page.url());
    return decodeURIComponent(pathname).replace(`/runs/${ground.runs.fixed}`, "") + search;
  };
  const inspector = () => page.getByRole("region", { name: "Why" });
  const sees = async (text: string, where = page.locator("main")) => where.getByText(text).first().waitFor();

  test("why it was sent back is on the screen after one click on the visit", async () => {
    await open("");
    await page.getByRole("link", { name: "closure.issue@1" }).first().click();
    assert.equal(address(), "/closure.issue@1");
    await sees("tests-pass (tests-failed)", inspector());
    await sees("failure 1 of 3", inspector());
    await page.reload();
    await sees("tests-pass (tests-failed)", inspector());
  });

  test("the graph shows the ways that were taken and how often, as a picture and as a table", async () => {
    await open("");
    await page.locator(".graph g.taken.back").waitFor();
    assert.match((await page.locator(".graph g.taken", { hasText: "handoff" }).textContent()) ?? "", /×2$/);
    await page.keyboard.press("t");
    const row = page.locator(".graph tr", { hasText: "handoff → closure.issue" });
    assert.equal(await row.locator("td.num").textContent(), "2");
    await page.keyboard.press("t");
    await page.locator(".graph a.step", { hasText: "initial.issue" }).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.equal(address(), "/continuation.issue@2");
  });

  test("an earlier moment shows the run as it stood, in the graph, the visits and the data", async () => {
    await open("?at=4");
    await page.locator(".graph a.step.live", { hasText: "continuation.issue" }).waitFor();
    assert.equal(await page.locator(".strip .visit").count(), 2);
    await page.getByText("Data at entry 4").click();
    await sees("multiply each price by its quantity");
    assert.ok((await page.locator(".json .marked").count()) > 0);
    await page.keyboard.press("]");
    assert.equal(address(), "?at=5");
    await page.keyboard.press("{");
    assert.equal(address(), "?at=4");
    await page.keyboard.press("End");
    assert.equal(address(), "");
    await page.locator(".graph a.step.live").waitFor({ state: "detached" });
    assert.equal(await page.locator(".strip .visit").count(), 5);
  });

  test("the conversation is read by keys, and finds words", async () => {
    await open("/talk");
    await sees("all settled");
    const all = await page.locator(".utterance").count();
    await page.keyboard.press("N");
    assert.equal(await page.locator(":focus").getAttribute("data-role"), "assistant");
    await page.getByRole("searchbox").fill("all settled");
    await page.getByRole("searchbox").press("Enter");
    await page.locator(".utterance").nth(1).waitFor({ state: "detached" });
    assert.ok(all > 10);
    await sees("all settled");
  });

  test("the log has more lines at a lower level, and a line leads to its moment", async () => {
    await open("/log");
    await sees("Run started: fixer");
    const lines = async () =>
      Number(/(\d+) lines/.exec((await page.locator(".log h2").textContent()) ?? "")?.[1]);
    const info = await lines();
    await page.getByRole("button", { name: "debug" }).click();
    await page.getByRole("button", { name: "debug", pressed: true }).waitFor();
    await until(async () => (await lines()) > info, "there are more lines");
    await page.locator(".log-line a").nth(6).click();
    assert.match(address(), /\?at=\d+$/);
  });

  test("the command of the screen is copied by a key, and keys can be switched off", async () => {
    await open("");
    await sees("Timeline");
    await page.keyboard.press("y");
    await page.getByText("Copied the command.").waitFor({ state: "attached" });
    assert.equal(await page.evaluate("navigator.clipboard.readText()"), `lockstep show ${ground.runs.fixed}`);
    await page.keyboard.press("?");
    await page.getByLabel("Single keys are shortcuts").uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("2");
    assert.equal(address(), "");
    await page.getByRole("button", { name: "Theme and keys" }).click();
    await page.getByLabel("Single keys are shortcuts").check();
    await page.keyboard.press("Escape");
    await page.keyboard.press("2");
    await page.getByRole("searchbox").waitFor();
    assert.equal(address(), "/talk");
  });

  test("@last leads to the run itself, and two picked runs are compared", async () => {
    await page.goto(`${studio.origin}/runs/@last`);
    await page.locator(".strip .visit").first().waitFor();
    assert.equal(new URL(page.url()).pathname, `/runs/${ground.runs.forked}`);
    await page.goto(`${studio.origin}/runs`);
    for (const run of [ground.runs.fixed, ground.runs.forked]) await page.getByLabel(`Pick ${run}`).check();
    await page.keyboard.press("c");
    await sees("First difference.");
    assert.equal(new URL(page.url()).pathname, `/compare/${ground.runs.fixed}/${ground.runs.forked}`);
  });

  test("another run on the same screen is shown with its own state", async () => {
    await page.goto(`${studio.origin}/runs/${ground.runs.forked}`);
    await page.getByRole("link", { name: `${ground.runs.fixed} entry` }).click();
    await sees("5", page.locator(".figures dd").first());
    assert.match(address(), /^\?at=\d+$/);
    await page.goBack();
    await page.getByText(ground.runs.forked).first().waitFor();
    await page.goto(`${studio.origin}/runs/${ground.runs.failed}`);
    await page.locator(".head .chip.bad", { hasText: "failed" }).waitFor();
    assert.equal(await page.locator(".head .chip.good").count(), 0);
  });

  test("a first visit loads little, and screens that are rarely needed only when they are opened", async () => {
    const { page: first, context } = await watchedPage(browser);
    const loaded = new Map<string, number>();
    first.on("response", (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith("/api/")) loaded.set(pathname, Number(response.headers()["content-length"]));
    });
    const bytes = () => [...loaded.values()].reduce((sum, one) => sum + one, 0);
    await first.goto(studio.url);
    await first.getByText("6 runs recorded.").waitFor();
    assert.deepEqual([...loaded.keys()].toSorted(), ["/", "/icon.svg", "/page.css", "/page.js"]);
    assert.ok(bytes() <= 54_000, `${bytes()} bytes`);
    await first.getByRole("link", { name: "Figures" }).click();
    await first.getByRole("heading", { name: "Figures" }).waitFor();
    assert.ok(loaded.has("/more.js"));
    assert.ok(bytes() <= 71_000, `${bytes()} bytes with all screens`);
    await context.close();
  });

  test("none of it broke a rule", () => assert.deepEqual(watched.faults, []));
});
