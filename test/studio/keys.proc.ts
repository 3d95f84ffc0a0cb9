/** The studio without a pointer: everything by keys, the focus is kept, and the shortcuts can be switched off. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../until.ts";
import { withBrowser } from "./browser.ts";
import { openedStudio } from "./opened.ts";

describe("the studio by keys", withBrowser, () => {
  const opened = openedStudio();
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await opened.page.keyboard.press(key);
  };
  const at = () => new URL(opened.page.url()).pathname;
  const focused = () =>
    opened.page.evaluate<string>("document.activeElement.textContent.trim().slice(0, 60)");

  test("g and a letter go to a screen", async () => {
    for (const [key, path] of [
      ["i", "/inbox"],
      ["f", "/flows"],
      ["s", "/figures"],
      ["w", "/whatif"],
      ["r", "/runs"],
    ] as const) {
      await press("g", key);
      await until(() => at() === path, `g ${key} leads to ${path}`);
    }
    assert.equal(at(), "/runs");
  });

  test("the first stop of Tab leads past the rail, and the focus can be seen", async () => {
    const { page } = opened;
    await page.reload();
    await page.getByText("6 runs recorded.").waitFor();
    await press("Tab");
    assert.equal(await focused(), "Skip to the content");
    const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
    assert.notEqual(outline, "none");
  });

  test("j and Enter open a run, Escape goes back", async () => {
    const { page } = opened;
    await press("j", "Enter");
    await until(() => at().startsWith("/runs/"), "a run is open");
    await page.getByText("Timeline").waitFor();
    await press("Escape");
    await until(() => at() === "/runs", "back at the list");
    assert.equal(at(), "/runs");
  });

  test("a question is answered by its letter only in the card that has the focus", async () => {
    const { page, ground } = opened;
    await press("g", "i");
    await page.getByText("2 questions wait for you.").waitFor();
    // The focus is in no card: nothing is decided.
    await press("d");
    assert.equal(ground.lockstep("show", ground.runs.building).outcome, "waiting");
    await press("j", "s");
    await page.getByText("The run ends here.").waitFor();
    assert.equal(await focused(), "Go back");
    await press("Enter", "j");
    const first = await page.locator("[data-question]").first().innerText();
    const run = first.includes("npm run build") ? ground.runs.building : ground.runs.editing;
    await page.locator("[data-question]").first().focus();
    await press("d");
    await page.getByText("You answered deny.").waitFor();
    await until(() => ground.lockstep("show", run).outcome !== "waiting", "the run went on");
  });

  test("a letter that is typed in a field answers nothing", async () => {
    const { page, studio } = opened;
    await page.goto(`${studio.origin}/flows/typed/start`);
    await page.getByLabel("topic *").focus();
    await page.keyboard.type("gr?y");
    assert.equal(await page.getByLabel("topic *").inputValue(), "gr?y");
    assert.equal(at(), "/flows/typed/start");
  });

  test("the shortcuts can be switched off, and stay off", async () => {
    const { page, studio, faults } = opened;
    await page.goto(`${studio.origin}/runs`);
    await page.getByText("6 runs recorded.").waitFor();
    await press("?");
    const box = page.getByLabel("Single keys are shortcuts");
    await box.waitFor();
    await box.uncheck();
    await press("Escape");
    await page.reload();
    await page.getByText("6 runs recorded.").waitFor();
    await press("g", "i");
    await press("?");
    assert.equal(at(), "/runs");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await page.goto(`${studio.origin}/inbox`);
    const card = page.locator("[data-question]").first();
    await card.focus();
    await press("s");
    assert.equal(await page.getByText("The run ends here.").count(), 0);
    assert.deepEqual(faults, []);
  });
});
