/** A project with runs of every kind, its studio and one page of it, for all tests of a suite. */
import { after, before } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser, watchedPage, type Watched } from "./browser.ts";
import { fullGround, openStudio, type FullGround, type Studio } from "./ground.ts";

export type Opened = Watched & { readonly browser: Browser; readonly ground: FullGround; studio: Studio };

/** Filled in before the first test of the suite that calls it. */
export function openedStudio(): Opened {
  const opened = {} as Opened;
  before(async () => {
    const [browser, ground] = await Promise.all([openBrowser(), fullGround()]);
    const studio = await openStudio(ground);
    Object.assign(opened, await watchedPage(browser), { browser, ground, studio });
    await opened.page.goto(studio.url);
    await opened.page.getByText("6 runs recorded.").waitFor();
  });
  after(async () => {
    await opened.browser.close();
    await opened.studio.close();
    opened.ground.remove();
  });
  return opened;
}
