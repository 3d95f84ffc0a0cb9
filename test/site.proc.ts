/** The documentation as web pages, opened from the disk in a real browser. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { buildSite } from "../scripts/site.ts";
import {
  accessFaults,
  boxFaults,
  openBrowser,
  picture,
  watchedPage,
  withBrowser,
  type Look,
} from "./studio/browser.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-site-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const pages = buildSite(folder);
const textOf = (path: string) => readFileSync(join(folder, path), "utf8");

test("every page has a page, and every link and picture leads somewhere", () => {
  assert.ok(pages.length > 60, String(pages.length));
  const wrong = pages.flatMap((path) =>
    [...textOf(path).matchAll(/\b(?:href|src|srcset)="([^"]+)"/g)].flatMap(([, link = ""]) => {
      if (/^(?:https?|mailto|data):/.test(link)) return [];
      const [file = "", mark] = link.split("#");
      const there = file === "" ? join(folder, path) : resolve(folder, dirname(path), file);
      if (!existsSync(there)) return [`${path}: ${link}`];
      const isMarked =
        mark === undefined ||
        !there.endsWith(".html") ||
        readFileSync(there, "utf8").includes(`id="${mark}"`);
      return isMarked ? [] : [`${path}: ${link}`];
    }),
  );
  assert.deepEqual(wrong, []);
});

test("the navigation has every page that the README lists", () => {
  const listed = [
    ...readFileSync(new URL("../README.md", import.meta.url), "utf8").matchAll(/\]\((docs\/[\w-]+)\.md\)/g),
  ];
  const nav = /<nav[^]*<\/nav>/.exec(textOf("index.html"))?.[0] ?? "";
  assert.ok(listed.length > 40);
  assert.deepEqual(
    listed.map(([, path]) => path).filter((path) => !nav.includes(`href="./${path}.html"`)),
    [],
  );
});

test("nothing comes from elsewhere", () => {
  for (const path of pages)
    assert.doesNotMatch(textOf(path), /<(?:script|link|img|iframe)[^>]+(?:src|href)="https?:/, path);
});

describe("in a browser", withBrowser, () => {
  const opened: Browser[] = [];
  after(async () => await Promise.all(opened.map((browser) => browser.close())));

  const open = async (look: Look) => {
    const browser = opened[0] ?? (await openBrowser());
    if (opened.length === 0) opened.push(browser);
    return await watchedPage(browser, look);
  };
  const go = async (page: Page, path: string) =>
    void (await page.goto(pathToFileURL(join(folder, path)).href));

  test("the search finds a section, and leads there", async () => {
    const { page, faults } = await open({});
    await go(page, "docs/limits.html");
    await page.keyboard.press("/");
    await page.keyboard.type("signature hmac key");
    const first = page.locator("#found li a").first();
    await first.waitFor();
    assert.match((await first.textContent()) ?? "", /Be notified: Signatures/);
    await first.click();
    await page.waitForURL(/notify\.html#signatures$/);
    assert.ok(await page.locator("#signatures").isVisible());
    await page.keyboard.press("/");
    await page.keyboard.type("zzzz qqqq");
    await page.getByText("Nothing was found.").waitFor();
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#found").isHidden());
    assert.deepEqual(faults, []);
  });

  for (const [path, width, theme] of [
    ["index.html", 1200, "light"],
    ["docs/cli.html", 360, "dark"],
    ["docs/studio.html", 720, "light"],
    ["docs/decisions/index.html", 1200, "dark"],
    ["CHANGELOG.html", 360, "light"],
  ] as const)
    test(`${path} at ${width} px, ${theme}: nothing is cut off, and axe finds nothing`, async () => {
      const { page, faults } = await open({ width, theme });
      await go(page, path);
      // Links within text run over the ends of lines: only the width counts here.
      const wide = (await boxFaults(page)).filter((fault) => fault.startsWith("the page is"));
      assert.deepEqual(wide, []);
      await picture(page, `site-${path.replaceAll(/\W/g, "-")}-${width}`);
      assert.deepEqual(faults, []);
      assert.deepEqual(await accessFaults(page), []);
    });
});
