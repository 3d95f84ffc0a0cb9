/** Runs in which every text is an attack: in the page nothing runs, nothing is fetched, and nothing is turned round. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { agentFiles, stepTo, writeFiles } from "../run/project.ts";
import { boxFaults, openBrowser, picture, watchedPage, withBrowser } from "./browser.ts";
import { emptyGround, openStudio, type Ground, type Studio } from "./ground.ts";

const TURNED = "\u202egnp.exe\u202c";
const ATTACK = [
  `<img src="http://localhost:9/a.png" onerror="window.ran='img'">`,
  `"><script>window.ran='script'</script>`,
  `<svg onload="window.ran='svg'"><style>*{display:none}</style>`,
  `<a href="javascript:window.ran='link'">x</a> javascript:window.ran=1`,
  "{{constructor.constructor('window.ran=1')()}} ${window.ran=1}",
  `photo${TURNED} \u001b[31mred \u0007 \u2066isolate`,
  "__proto__ \ud800 lone",
  "`$(touch pwned)`; touch pwned #",
].join(" ");
const SCREENS = [
  "/runs",
  "/runs?q=%3Cscript%3E",
  "/runs/{run}",
  "/runs/{run}/initial.a@1",
  "/runs/{run}/initial.a@1/why",
  "/runs/{run}/talk",
  "/runs/{run}/log",
  "/runs/{run}/effects",
  "/runs/{run}/document",
  "/runs/{run}/initial.a@1/fork",
  "/runs/{waiting}",
  "/compare/{run}/{waiting}",
  "/inbox",
  "/flows",
  "/flows/evil",
  "/flows/evil/initial.a",
  "/flows/evil/start",
  "/whatif/evil",
  "/figures?agent=evil",
  "/runs/%3Cimg%20src=x%20onerror=window.ran=1%3E",
  "/flows/%E2%80%AEgnp.exe",
];

describe("hostile texts in the page", withBrowser, () => {
  let browser: Browser;
  let ground: Ground;
  let studio: Studio;
  let page: Page;
  let faults: readonly string[];
  const runs = { run: "", waiting: "" };

  before(async () => {
    [browser, ground] = await Promise.all([openBrowser(), emptyGround()]);
    const { folder, lockstep } = ground;
    const text = (stepId: string, action: string) => ({
      step: stepId,
      output: { stepId, next_action: { action, reason: ATTACK, details: { target: ATTACK } } },
    });
    const calls = (input: object, name = "Bash") => ({ step: "initial.a", calls: [{ name, input }] });
    const end = [text("initial.a", "next"), text("closure.a", "closing")];
    writeFiles(folder, {
      ...agentFiles(
        "evil",
        {
          "initial.a": stepTo("work", { next: "closure.a", repeat: "initial.a" }, { more: { name: ATTACK } }),
          "closure.a": stepTo("closure", { closing: null }),
        },
        {
          agent: {
            displayName: ATTACK,
            description: ATTACK,
            parameters: { topic: { type: "string", description: ATTACK, cli: "--topic", required: true } },
          },
          runner: { boundaries: { allowedTools: ["*"], permissionMode: "default" } },
        },
      ),
      ".agent/evil/prompts/steps/initial/a/f_default.md": `Do {uv-topic}. ${ATTACK}\n`,
      "evil.yaml": JSON.stringify({
        replies: [
          calls({ file_path: `${ATTACK.slice(0, 60)}.txt` }, "Read"),
          calls({ command: ATTACK }, ATTACK.slice(0, 60)),
          ...end,
        ],
      }),
      "asks.yaml": JSON.stringify({
        replies: [calls({ command: ATTACK, description: ATTACK, [ATTACK.slice(0, 80)]: ATTACK }), ...end],
      }),
    });
    writeFileSync(join(folder, "long.txt"), "x".repeat(1_000_000));
    runs.run = String(lockstep("run", "evil", "--topic", ATTACK, "--script", "evil.yaml").run);
    runs.waiting = String(
      lockstep(
        "run",
        "evil",
        "--topic",
        "y".repeat(1_000_00),
        "--script",
        "asks.yaml",
        "--on-permission",
        "halt",
      ).run,
    );
    studio = await openStudio(ground);
    ({ page, faults } = await watchedPage(browser));
    await page.goto(studio.url);
    await page.getByText("2 runs recorded.").waitFor();
  });
  after(async () => {
    await browser.close();
    await studio.close();
    ground.remove();
  });

  test("nothing runs, nothing is fetched and nothing is turned round on any screen", async (context) => {
    for (const path of SCREENS)
      await context.test(path, async () => {
        const real = path.replace("{run}", runs.run).replace("{waiting}", runs.waiting);
        await page.goto(studio.origin + real);
        await page.locator("main h1").first().waitFor({ state: "attached" });
        await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
        const found = await page.evaluate<readonly [unknown, number, string]>(
          "[window.ran, document.querySelectorAll('main img, main script, main style, main iframe, [onerror], [onload]').length, document.body.textContent + document.title]",
        );
        assert.deepEqual(found.slice(0, 2), [undefined, 0], path);
        assert.doesNotMatch(found[2], /[\u202a-\u202e\u2066-\u2069]|(?![\t\n])\p{Cc}/u, path);
        assert.deepEqual(
          faults.filter((fault) => !/status of (?:400|404)/.test(fault)),
          [],
          path,
        );
        assert.deepEqual(await boxFaults(page), [], path);
      });
  });

  test("a call is shown whole to the person who decides on it", async () => {
    await page.goto(`${studio.origin}/inbox`);
    const command = await page.getByRole("group", { name: "The command", exact: true }).innerText();
    assert.ok(command.includes("touch pwned #"), command);
    assert.ok(command.includes("\\u{202e}"), command);
    await picture(page, "hostile-inbox");
  });

  test("a copied command runs nothing but itself", async () => {
    await page.goto(`${studio.origin}/flows/evil/start`);
    const typed = "it's $(touch pwned) `touch pwned`; touch pwned";
    await page.getByLabel("topic *").fill(typed);
    await page.locator(".command.whole code").filter({ hasText: "touch pwned" }).waitFor();
    const line = await page.locator(".command.whole code").innerText();
    const words = execFileSync("sh", ["-c", `lockstep() { printf '%s\\n' "$@"; }; ${line}`], {
      cwd: ground.folder,
      encoding: "utf8",
    });
    assert.ok(words.includes(`--topic=${typed}\n`), words);
    assert.equal(existsSync(join(ground.folder, "pwned")), false);
  });
});
