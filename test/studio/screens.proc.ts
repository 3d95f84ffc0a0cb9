/** Every screen of the studio in a real browser: what it shows, how it looks in both themes and widths, and its states. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { accessFaults, boxFaults, openBrowser, picture, watchedPage, withBrowser } from "./browser.ts";
import { emptyGround, fullGround, openStudio, type FullGround, type Studio } from "./ground.ts";

/** `{fixed}` and its like are runs of the ground. `seen`: texts of the screen, the last of which comes last. */
type ScreenCase = { readonly name: string; readonly path: string; readonly seen: readonly string[] };

const SCREENS: readonly ScreenCase[] = [
  {
    name: "runs",
    path: "/runs",
    seen: ["6 runs recorded.", "PermissionRequired", "task make the tests pass"],
  },
  { name: "run", path: "/runs/{fixed}", seen: ["issue 7", "Timeline", "closure.issue@2"] },
  { name: "run-stages", path: "/runs/{shipped}", seen: ["Timeline", "build-slug"] },
  { name: "why", path: "/runs/{fixed}/closure.issue@1/why", seen: ["tests-pass", "tests-failed"] },
  { name: "talk", path: "/runs/{fixed}/talk", seen: ["all settled"] },
  { name: "effects", path: "/runs/{fixed}/effects", seen: ["Effects"] },
  { name: "log", path: "/runs/{fixed}/log", seen: ["Log"] },
  {
    name: "inbox",
    path: "/inbox",
    seen: [
      "2 questions wait for you.",
      "npm run build && ls -l dist",
      "because of the moon.",
      "Allow for this run",
    ],
  },
  { name: "flows", path: "/flows", seen: ["asker", "1 error", "24 answers"] },
  { name: "flow", path: "/flows/fixer", seen: ["Answers at most", "Look at this machine"] },
  { name: "flow-step", path: "/flows/fixer/closure.issue", seen: ["Contract", "node --test"] },
  {
    name: "flow-findings",
    path: "/flows/broken",
    seen: ["SR-TRANS-001", 'Name a step of the flow, or add "continuation.b".'],
  },
  { name: "start", path: "/flows/typed/start", seen: ["must match ^[a-z]+$", "lockstep run typed"] },
  {
    name: "fork",
    path: "/runs/{fixed}/closure.issue@1/fork",
    seen: ["A second try: nothing is edited.", "Handoff"],
  },
  {
    name: "compare",
    path: "/compare/{fixed}/{forked}",
    seen: ["First difference.", "ends here", "only B", "nothing is left"],
  },
  { name: "whatif", path: "/whatif/fixer", seen: ["All 2 runs would go the same way."] },
  { name: "figures", path: "/figures", seen: ["Failure patterns", "tests-failed", "never failed"] },
];

const LOOKS = [
  { theme: "light", width: 1440, height: 900 },
  { theme: "dark", width: 1440, height: 900 },
  { theme: "light", width: 360, height: 740 },
  // 200 % zoom of a window of 1440 pixels has the room of 720.
  { theme: "dark", width: 720, height: 450 },
] as const;

describe("the screens of the studio", withBrowser, () => {
  let browser: Browser;
  let ground: FullGround;
  let studio: Studio;

  before(async () => {
    [browser, ground] = await Promise.all([openBrowser(), fullGround()]);
    studio = await openStudio(ground);
  });
  after(async () => {
    await browser.close();
    await studio.close();
    ground.remove();
  });

  const pathOf = (path: string) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ground.runs[name as keyof FullGround["runs"]]);

  for (const look of LOOKS)
    test(`all screens, ${look.theme} at ${look.width} pixels`, async (context) => {
      const watched = await watchedPage(browser, look);
      const { page } = watched;
      await page.goto(studio.url);
      for (const { name, path, seen } of SCREENS)
        await context.test(name, async () => {
          await page.goto(studio.origin + pathOf(path));
          for (const text of seen)
            await page.locator("main").getByText(text).first().waitFor({ state: "attached" });
          await picture(page, `${name}-${look.theme}-${look.width}`);
          assert.deepEqual(await boxFaults(page), []);
          assert.deepEqual(await accessFaults(page), []);
          assert.deepEqual(watched.faults, []);
        });
      await watched.context.close();
    });

  async function opened(path: string): Promise<{ readonly page: Page; readonly faults: readonly string[] }> {
    const watched = await watchedPage(browser);
    await watched.page.goto(studio.url);
    await watched.page.locator("main h1").waitFor();
    await watched.page.goto(studio.origin + pathOf(path));
    return watched;
  }

  test("the token leaves the address, and back and reload work", async () => {
    const { page } = await opened("/runs");
    assert.doesNotMatch(page.url(), /#/);
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/inbox");
    await page.reload();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await page.context().close();
  });

  test("without the token nothing is shown, and the page says where it is", async () => {
    const { page, context } = await watchedPage(browser);
    await page.goto(`${studio.origin}/runs/${ground.runs.fixed}`);
    await page.getByText("Open the studio with the address that it printed.").waitFor();
    assert.doesNotMatch(await page.locator("body").innerText(), /fixer/);
    await context.close();
  });

  test("what is not there is said, with a way back", async () => {
    for (const [path, says] of [
      ["/nowhere", "There is no such page."],
      ["/runs/zzzzzz", "RUN_UNKNOWN"],
      ["/flows/nobody", "AGENT_UNKNOWN"],
      ["/compare/zzzzzz/{fixed}", "RUN_UNKNOWN"],
      ["/runs/{fixed}/closure.issue@9/why", "STEP_UNKNOWN"],
    ] as const) {
      const { page } = await opened(path);
      await page.locator("main").getByText(says).first().waitFor();
      assert.deepEqual(await accessFaults(page), [], path);
      await page.context().close();
    }
  });

  test("a difference opens both runs, and the runs can be swapped", async () => {
    const { page } = await opened("/compare/{fixed}/{forked}");
    await page.getByText("First difference.").waitFor();
    await page.keyboard.press("s");
    await page.waitForURL(pathOf(`${studio.origin}/compare/{forked}/{fixed}`));
    await page.getByRole("link", { name: "open in A" }).first().click();
    await page.waitForURL(pathOf(`${studio.origin}/runs/{forked}/closure.issue%401`));
    await page.goBack();
    await page.getByText("First difference.").waitFor();
    assert.equal(new URL(page.url()).pathname, pathOf("/compare/{forked}/{fixed}"));
    await page.context().close();
  });

  test("a number of the figures opens exactly its runs", async () => {
    const { page } = await opened("/figures?agent=fixer");
    const row = page.getByRole("row").filter({ hasText: "tests-failed" });
    await row.getByRole("button").first().click();
    const behind = page.getByRole("region", { name: "Runs behind the number" });
    await behind.waitFor();
    const runs = await behind.getByRole("link").allInnerTexts();
    assert.deepEqual(runs, [ground.runs.fixed]);
    await page.context().close();
  });

  test("a flow shows what its tests cover", async () => {
    const { page, faults } = await opened("/flows/fixer");
    const ways = page.locator("svg .way.taken");
    await page.getByRole("button", { name: "Covered by tests" }).click();
    const part = page
      .locator("section")
      .filter({ has: page.getByRole("heading", { name: "Covered by tests" }) });
    await part.getByText(/^transitions$/).waitFor();
    assert.match(await part.innerText(), /steps\s+3 of 3/);
    await ways.first().waitFor({ state: "attached" });
    await picture(page, "flow-coverage");
    assert.deepEqual(await accessFaults(page), []);
    assert.deepEqual(await boxFaults(page), []);
    assert.deepEqual(faults, []);
    await page.context().close();
  });

  test("a flow lights the way that shows a finding", async () => {
    const { page, faults } = await opened("/flows/broken");
    await page.getByRole("button", { name: "Show in the graph" }).first().click();
    assert.equal(await page.locator("svg a[aria-current]").count(), 1);
    assert.equal(await page.locator("svg a.faint").count(), 1);
    assert.deepEqual(faults, []);
    await page.context().close();
  });
});

describe("a studio with nothing to show", withBrowser, () => {
  let browser: Browser;
  before(async () => (browser = await openBrowser()));
  after(async () => await browser.close());

  test("every screen says in a sentence what is missing, and a read-only one has no button that acts", async () => {
    const ground = await emptyGround();
    const studio = await openStudio(ground, "--read-only");
    const { page, faults } = await watchedPage(browser);
    try {
      await page.goto(studio.url);
      for (const [path, says] of [
        ["/runs", "No runs are recorded yet."],
        ["/inbox", "Nothing waits for you."],
        ["/flows", "There is no agent here."],
        ["/whatif", "There is no agent here."],
        ["/figures", "Figures begin with the first run."],
      ] as const) {
        await page.goto(studio.origin + path);
        await page.locator("main").getByText(says).first().waitFor();
        await picture(page, `empty${path.replace("/", "-")}`);
        assert.deepEqual(await accessFaults(page), [], path);
        assert.deepEqual(await boxFaults(page), [], path);
      }
      assert.equal(await page.getByText("read only").count(), 1);
      assert.deepEqual(faults, []);
    } finally {
      await page.context().close();
      await studio.close();
      ground.remove();
    }
  });
});
