/** The first minutes of somebody who has never seen the studio: a first run, and why a run was sent back. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { until } from "../until.ts";
import { openBrowser, picture, watchedPage, withBrowser } from "./browser.ts";
import { emptyGround, fullGround, openStudio, type Ground } from "./ground.ts";

type Check = { readonly ok: boolean; readonly summary: string };

/** The whole text stands in the window, so that nobody has to look for it. */
async function isInView(page: Page, where: Locator): Promise<void> {
  await where.waitFor();
  const box = (await where.boundingBox())!;
  const { width, height } = page.viewportSize()!;
  const isInside = box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
  assert.ok(
    isInside,
    `${await where.textContent()} is at ${JSON.stringify(box)} in a window of ${width}x${height}`,
  );
}

describe("the first minutes with the studio", withBrowser, () => {
  let browser: Browser;
  const ends: (() => unknown)[] = [];
  before(async () => {
    browser = await openBrowser();
  });
  after(async () => {
    await browser.close();
    for (const end of ends) await end();
  });

  const begun = async (ground: Ground, ...args: readonly string[]) => {
    const studio = await openStudio(ground, ...args);
    ends.push(studio.close, ground.remove);
    return studio;
  };

  test("a new agent, the studio opened by the command, and a finished run: without a key and without a network", async () => {
    const ground = await emptyGround();
    const said = join(ground.folder, "../opened");
    const opener = join(ground.folder, "..", process.platform === "darwin" ? "open" : "xdg-open");
    writeFileSync(opener, `#!/bin/sh\nprintf %s "$1" > ${said}-1\nmv ${said}-1 ${said}\n`, { mode: 0o755 });
    const kept = Object.entries(ground.env).filter(([name]) => !/_(?:API_KEY|TOKEN)$/.test(name));
    const away = "http://127.0.0.1:9";
    const env = {
      ...Object.fromEntries(kept),
      PATH: `${join(ground.folder, "..")}:${ground.env.PATH}`,
      HTTP_PROXY: away,
      HTTPS_PROXY: away,
    };
    ground.lockstep("init", "hello");
    await begun({ ...ground, env }, "--open");
    await until(() => existsSync(said), "the browser is opened");
    const { page, faults } = await watchedPage(browser);
    await page.goto(readFileSync(said, "utf8"));
    await page.getByText("No runs are recorded yet.").waitFor();
    await page.getByRole("link", { name: "Flows" }).click();
    await page.getByRole("link", { name: "hello", exact: true }).click();
    await page.getByRole("link", { name: "Start" }).first().click();
    await page.getByLabel("topic *").fill("tides");
    await page.getByLabel("Script in place of a model").fill(".agent/hello/script.yaml");
    await page.getByText("--script=.agent/hello/script.yaml").waitFor();
    await page.getByRole("button", { name: "Start the run" }).click();
    await page.waitForURL(/\/runs\/[a-z0-9]+$/);
    await isInView(page, page.locator(".head .chip.good", { hasText: "completed" }));
    await picture(page, "first-run");
    const run = new URL(page.url()).pathname.split("/").at(-1)!;
    assert.equal(ground.lockstep("show", run).outcome, "completed");
    assert.deepEqual(faults, []);
  });

  test("from the list of runs, two clicks show why a run was sent back, by what and to where", async () => {
    const ground = await fullGround();
    const studio = await begun(ground);
    const { page, faults } = await watchedPage(browser);
    await page.goto(studio.url);
    // Its fork says the same of itself, and rows come as they are worked out.
    const row = page.locator("tbody tr", { has: page.locator(`a[href$="/runs/${ground.runs.fixed}"]`) });
    await isInView(page, row);
    await row.getByRole("link").first().click();
    // Which visit was sent back can be told from the others before anything is opened.
    await isInView(page, page.locator(".graph g.taken.back").first());
    const visit = page.locator(".visit", { hasText: "✗ closing" });
    await isInView(page, visit);
    await visit.getByRole("link", { name: "closure.issue@1" }).click();
    const why = page.getByRole("region", { name: "Why" });
    // What was said, what proved it wrong, and where that led; then what the check has seen.
    for (const words of ["closing", "tests-pass (tests-failed)", "continuation.issue"])
      await isInView(page, why.getByText(words).first());
    const { checks } = ground.lockstep("show", ground.runs.fixed) as { readonly checks: readonly Check[] };
    const failed = checks.filter(({ ok }) => !ok);
    assert.equal(failed.length, 1);
    await why.getByText(failed[0]!.summary.split("\n")[0]!).first().waitFor({ state: "attached" });
    await picture(page, "first-why");
    assert.deepEqual(faults, []);
  });
});
