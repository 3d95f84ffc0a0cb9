/** Many windows of one studio, windows that nobody sees, and records that disappear under an open page. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Page, Request } from "playwright-core";
import { until } from "../until.ts";
import { accessFaults, watchedPage, withBrowser } from "./browser.ts";
import { openStudio } from "./ground.ts";
import { openedStudio } from "./opened.ts";

/** The browser of the tests never hides a page by itself: it is told so, as by a browser that does. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
    Object.defineProperty(document, "visibilityState", { value: "${isHidden ? "hidden" : "visible"}", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);
}

/** The streams that this page has open. */
function streamsOf(page: Page): () => number {
  const open = new Set<Request>();
  page.on("request", (request) => {
    if (request.url().includes("/api/stream")) open.add(request);
  });
  page.on("requestfinished", (request) => open.delete(request));
  page.on("requestfailed", (request) => open.delete(request));
  return () => open.size;
}

describe("windows of the studio", withBrowser, () => {
  const opened = openedStudio();

  test("a window that is hidden holds no connection, and shows what it missed when it is seen again", async () => {
    const { page, studio, ground } = opened;
    const streams = streamsOf(page);
    await page.goto(`${studio.origin}/flows/fixer`);
    await page.getByText("The check found nothing.").waitFor();
    await until(() => streams() === 1, "the page listens");
    await setHidden(page, true);
    await until(() => streams() === 0, "the connection is given back");
    const file = join(ground.folder, ".agent/fixer/steps_registry.json");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/"target":\s*"closure\.issue"/, '"target": "closure.nowhere"'));
    await setHidden(page, false);
    await page.getByText("there is no such step").first().waitFor();
    await until(() => streams() === 1, "the page listens again");
    writeFileSync(file, text);
    ground.lockstep("run", "asker", "--topic", "late", "--script", "short.yaml");
    await page.goto(`${studio.origin}/runs`);
    await page.getByText("7 runs recorded.").waitFor();
    await setHidden(page, true);
    await until(() => streams() === 0, "the connection is given back");
    ground.lockstep("run", "asker", "--topic", "later", "--script", "short.yaml");
    await setHidden(page, false);
    await page.getByText("8 runs recorded.").waitFor();
    assert.equal(await page.getByText("topic later").count(), 1);
  });

  test("seven windows that are all seen are live, although a browser has six connections", async () => {
    const { browser, studio, ground } = opened;
    const { context, page: first, faults } = await watchedPage(browser);
    const isLive = async (page: Page) => await page.getByText("live", { exact: true }).waitFor();
    const pages = [first];
    while (pages.length < 7) pages.push(await context.newPage());
    const streams = pages.map(streamsOf);
    const held = () => streams.reduce((sum, count) => sum + count(), 0);
    await first.goto(studio.url);
    for (const page of pages.slice(1)) await page.goto(`${studio.origin}/runs`);
    for (const page of pages) await page.getByText("8 runs recorded.").waitFor();
    for (const page of pages) await isLive(page);
    assert.equal(held(), 4);
    const script = ["--script", "edit.yaml", "--on-permission", "halt"];
    const { run } = ground.lockstep("run", "asker", "--topic", "seen-by-all", ...script);
    for (const page of pages) await page.getByText("topic seen-by-all").waitFor();
    for (const page of pages) await page.getByLabel("3 questions open").waitFor();
    // The windows with a stream go away: one of the others reads, for all of them.
    for (const page of pages.slice(0, 4)) await page.close();
    const rest = streams.slice(4);
    await until(() => rest.reduce((sum, count) => sum + count(), 0) === 1, "one window reads");
    // The entries of a run come to a window without a stream too.
    const without = pages[4 + rest.findIndex((count) => count() === 0)]!;
    await without
      .locator(`a[href="/runs/${String(run)}"]`)
      .first()
      .click();
    const entries = async () => Number(await without.getByLabel("Entry").getAttribute("max"));
    const before = await entries();
    ground.lockstep("answer", String(run), "deny");
    ground.lockstep("resume", String(run), "--script", "edit.yaml");
    await until(async () => (await entries()) > before, "the entries come by themselves");
    for (const page of pages.slice(4)) await page.getByLabel("2 questions open").waitFor();
    for (const page of pages.slice(4)) await isLive(page);
    assert.deepEqual(faults, []);
    await context.close();
  });

  test("two questions about the same edit are told apart by those who cannot see them", async () => {
    const { page, studio, ground } = opened;
    ground.lockstep("run", "asker", "--topic", "again", "--script", "edit.yaml", "--on-permission", "halt");
    await page.goto(`${studio.origin}/inbox`);
    await page.getByText("3 questions wait for you.").waitFor();
    await until(async () => (await page.locator("[data-question] .diff").count()) === 2, "both are shown");
    assert.deepEqual(await accessFaults(page), []);
  });

  test("a list whose journal was removed becomes empty, and the next run appears in it", async () => {
    const { page, studio, ground } = opened;
    await page.goto(`${studio.origin}/runs`);
    await page.getByText("10 runs recorded.").waitFor();
    await page.getByLabel("3 questions open").waitFor();
    for (const end of ["", "-wal", "-shm"])
      rmSync(join(ground.folder, `.lockstep/runs.db${end}`), { force: true });
    await page.getByText("No runs are recorded yet.").waitFor();
    assert.equal(await page.locator("tbody tr").count(), 0);
    await page.getByLabel("3 questions open").waitFor({ state: "detached" });
    rmSync(join(ground.folder, ".lockstep"), { recursive: true, force: true });
    ground.lockstep("run", "asker", "--topic", "anew", "--script", "short.yaml");
    await page.getByText("1 run recorded.").waitFor();
    await page.getByText("topic anew").waitFor();
  });

  test("commands to paste lead to the place that the studio was started with", async () => {
    const { browser, ground } = opened;
    const state = join(ground.folder, "other state");
    const studio = await openStudio(ground, "--state", "other state", "--cwd", ground.folder);
    const { page, faults } = await watchedPage(browser);
    await page.goto(studio.url);
    const where = `'--cwd=${ground.folder}' '--state=${state}'`.replace(
      `'--cwd=${ground.folder}'`,
      `--cwd=${ground.folder}`,
    );
    await page.getByText(`runs ${where}`).waitFor();
    await page.getByText(`init hello ${where}`).waitFor();
    await page.goto(`${studio.origin}/flows/asker/start`);
    const topic = page.getByLabel("topic *");
    await topic.fill("tides");
    await page.getByText(`--cwd=${ground.folder} --state='${state}'`).waitFor();
    // What cannot be seen is not pasted, and the page says so.
    await topic.fill("a\u202eb");
    await page.getByText("The command is not shown").waitFor();
    assert.deepEqual(faults, []);
    await studio.close();
  });
});
