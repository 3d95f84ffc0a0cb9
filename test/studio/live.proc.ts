/** The page while runs move: a question is answered, a run is started, forked and stopped, and everything is seen at once. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { until } from "../until.ts";
import { accessFaults, picture, watchedPage, withBrowser } from "./browser.ts";
import { openStudio } from "./ground.ts";
import { openedStudio } from "./opened.ts";

describe("the studio while runs move", withBrowser, () => {
  const opened = openedStudio();
  const go = async (path: string) => await opened.page.goto(opened.studio.origin + path);
  const card = (text: string) => opened.page.locator("[data-question]").filter({ hasText: text });

  test("a question is answered in the page, and the run goes on and completes", async () => {
    const { page, ground } = opened;
    await go("/inbox");
    await card("because of the moon.").getByRole("button", { name: "Allow once" }).click();
    await card("because of the moon.").getByText("You answered allow. The run was resumed.").waitFor();
    await picture(page, "inbox-answered");
    await until(
      () => ground.lockstep("show", ground.runs.editing).outcome === "completed",
      "the run completes",
    );
    const entries = JSON.stringify(ground.lockstep("why", ground.runs.editing, "initial.note"));
    assert.match(entries, /"by":"studio"/);
    // The number in the rail follows without a reload.
    await page.getByLabel("1 question open").waitFor();
  });

  test("an answer that cannot be undone is asked about once more", async () => {
    const { page, ground } = opened;
    const asked = card("npm run build");
    await asked.getByRole("button", { name: "Stop the run" }).click();
    await asked.getByText("The run ends here.").waitFor();
    assert.deepEqual(await accessFaults(page), []);
    await asked.getByRole("button", { name: "Go back" }).click();
    assert.equal(ground.lockstep("show", ground.runs.building).outcome, "waiting");
  });

  test("a question that was answered elsewhere says so, and nothing moves", async () => {
    const { ground } = opened;
    const asked = card("npm run build");
    await asked.getByRole("button", { name: "Deny" }).waitFor();
    ground.lockstep("answer", ground.runs.building, "deny");
    await asked.getByText("Answered elsewhere").waitFor();
    assert.equal(await asked.getByRole("button", { name: "Deny" }).count(), 0);
  });

  test("a form says what the command line says, at its field, and nothing starts by Enter", async () => {
    const { page, ground } = opened;
    await go("/flows/typed/start");
    const topic = page.getByLabel("topic *");
    await topic.fill("Tides!");
    await page.locator(".field .wrong").first().waitFor();
    const refused = JSON.stringify(
      ground.lockstep("run", "typed", "--topic", "Tides!", "--script", "typed.yaml"),
    );
    const said = await page.locator(".field .wrong").first().innerText();
    assert.ok(refused.includes(JSON.stringify(said).slice(1, -1)), `${said}\n${refused}`);
    await topic.press("Enter");
    await page.getByRole("button", { name: "Start the run" }).click();
    assert.equal(await page.evaluate("document.activeElement.id"), "parameter-topic");
    assert.equal(new URL(page.url()).pathname, "/flows/typed/start");
    await topic.fill("tides");
    await page.getByText("lockstep run typed --topic=tides").waitFor();
  });

  test("a run that is started in the page appears, and ends", async () => {
    const { page, ground } = opened;
    await page.getByLabel("Script in place of a model").fill("typed.yaml");
    await page.getByText("--script=typed.yaml").waitFor();
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/runs\/[a-z0-9]+$/);
    await page.getByText("completed").first().waitFor();
    await page.getByText("closure.a").first().waitFor();
    await picture(page, "started");
    const run = new URL(page.url()).pathname.split("/").at(-1)!;
    assert.deepEqual(ground.lockstep("show", run).outcome, "completed");
  });

  test("a fork with another answer shares what came before, and can be compared with its origin", async () => {
    const { page, ground } = opened;
    await go(`/runs/${ground.runs.fixed}/closure.issue@1/fork`);
    await page.getByRole("button", { name: "Edit" }).first().click();
    const field = page.getByLabel("New");
    await field.fill("{ not json");
    await page.locator(".wrong").first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Fork and rest" }).isDisabled(), true);
    await field.fill(
      JSON.stringify({ stepId: "closure.issue", next_action: { action: "repeat", reason: "look again" } }),
    );
    await page.getByText("With another answer.").waitFor();
    await page.getByRole("button", { name: "Fork and rest" }).click();
    await page.waitForURL(/\/runs\/[a-z0-9]+$/);
    const made = new URL(page.url()).pathname.split("/").at(-1)!;
    assert.notEqual(made, ground.runs.fixed);
    await go(`/compare/${ground.runs.fixed}/${made}`);
    await page.getByText("First difference.").waitFor();
    await page.getByText("look again").first().waitFor();
  });

  test("the flow and what if follow a save of the agent's files", async () => {
    const { page, ground } = opened;
    await go("/flows/fixer");
    await page.getByText("The check found nothing.").waitFor();
    const file = join(ground.folder, ".agent/fixer/steps_registry.json");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/"target":\s*"closure\.issue"/, '"target": "closure.nowhere"'));
    await page.getByText("there is no such step").first().waitFor();
    assert.equal(await page.getByRole("link", { name: "Start", exact: true }).count(), 0);
    writeFileSync(file, text);
    await page.getByText("The check found nothing.").waitFor();
  });

  test("what is not trusted starts only once its list is ticked, and a list that changes is ticked again", async () => {
    const { browser, ground } = opened;
    const careful = await openStudio({ ...ground, env: { ...ground.env, LOCKSTEP_TRUST: undefined } });
    const { page, faults } = await watchedPage(browser);
    await page.goto(careful.url);
    await page.goto(`${careful.origin}/flows/fixer/start`);
    const list = page.getByLabel("What is to be trusted");
    const tick = page.getByLabel("I have read this and trust it");
    const start = page.getByRole("button", { name: "Start the run" });
    await list.getByText("node --test").waitFor();
    assert.equal(await start.isDisabled(), true);
    await page.getByLabel("issue *").fill("8");
    await page.getByLabel("Script in place of a model").fill("again.yaml");
    await page.keyboard.press("Control+Enter");
    assert.equal(new URL(page.url()).pathname, "/flows/fixer/start");
    await tick.check();
    assert.equal(await start.isDisabled(), false);
    const file = join(ground.folder, ".agent/fixer/steps_registry.json");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace("node --test", "node --test --watch"));
    await list.getByText("node --test --watch").waitFor();
    assert.deepEqual([await tick.isChecked(), await start.isDisabled()], [false, true]);
    writeFileSync(file, text);
    await list.getByText("node --test --watch").waitFor({ state: "detached" });
    await tick.check();
    await start.click();
    await page.waitForURL(/\/runs\/[a-z0-9]+$/);
    assert.deepEqual(faults, []);
    await careful.close();
  });

  test("a studio that is killed is seen to be gone, and comes back with its runs", async () => {
    const { page, ground } = opened;
    await go("/runs");
    await page.getByText("runs recorded.").waitFor();
    opened.studio.process.kill("SIGKILL");
    await page.getByText(/last heard|no connection/).waitFor();
    assert.equal(await page.getByText("issue 7").first().isVisible(), true);
    const port = new URL(opened.studio.origin).port;
    opened.studio = await openStudio(ground, "--port", port);
    // Another start has another token: the open page says so, and the new address works.
    await page.goto(opened.studio.url);
    await page.getByText("runs recorded.").waitFor();
  });

  test("nothing went wrong in the page meanwhile", () =>
    assert.deepEqual(
      opened.faults.filter((fault) => !/net::ERR_|401/.test(fault)),
      [],
    ));
});
