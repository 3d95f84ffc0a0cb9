/** Writes docs/pictures/studio-*.png: screens of the studio over real runs, in both themes and on a narrow screen. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser, watchedPage } from "../test/studio/browser.ts";
import { fullGround, openStudio } from "../test/studio/ground.ts";

const folder = fileURLToPath(new URL("../docs/pictures", import.meta.url));

const ground = await fullGround("cart");
const studio = await openStudio(ground);
const browser = await openBrowser();
const { fixed } = ground.runs;

/** Path, and a text that is seen once the screen is whole. */
const SCREENS = {
  runs: ["/runs", "runs recorded."],
  run: [`/runs/${fixed}/closure.issue@1`, "tests-failed"],
  inbox: ["/inbox", "because of the moon."],
  flow: ["/flows/fixer/closure.issue", "node --test"],
  figures: ["/figures", "never failed"],
} as const;

const LOOKS = [
  { theme: "light", width: 1440, height: 900, of: ["runs", "run", "inbox", "flow", "figures"] },
  { theme: "dark", width: 1440, height: 900, of: ["runs", "run", "inbox", "flow", "figures"] },
  { theme: "light", width: 360, height: 740, of: ["run", "inbox"] },
] as const;

try {
  for (const { of, ...look } of LOOKS) {
    const { page, context } = await watchedPage(browser, look);
    await page.goto(studio.url);
    for (const name of of) {
      const [path, seen] = SCREENS[name];
      await page.goto(studio.origin + path);
      await page.locator("main").getByText(seen).first().waitFor({ state: "attached" });
      await page.locator("[aria-busy=true]").waitFor({ state: "detached" });
      const file = `studio-${name}-${look.width === 360 ? "narrow" : look.theme}.png`;
      writeFileSync(join(folder, file), await page.screenshot({ animations: "disabled" }));
    }
    await context.close();
  }
} finally {
  await browser.close();
  await studio.close();
  ground.remove();
}
