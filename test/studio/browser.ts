/** A real browser for the tests of the studio's page, and what each test asks of a page. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { needs } from "../needs.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const resolve = createRequire(import.meta.url).resolve;

/** The installed Chrome, where there is one, in the places in which Playwright looks for it. */
const INSTALLED: { readonly [platform: string]: readonly string[] } = {
  darwin: ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"],
  linux: ["/opt/google/chrome/chrome"],
  win32: [
    "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
    "C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe",
  ],
};

const given = process.env.LOCKSTEP_BROWSER;
const isPacked = process.platform === "linux" && process.arch === "x64";
const installed = INSTALLED[process.platform]?.find((path) => existsSync(path));

/** Goes to `test` as its options. `@sparticuz/chromium` is built for Linux on x64 only. */
export const withBrowser = needs(
  given !== undefined || isPacked || installed !== undefined,
  "no browser for the page of the studio (install Google Chrome, or set LOCKSTEP_BROWSER to a Chromium)",
);

export async function openBrowser(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const executablePath = given ?? (isPacked ? unpacked() : installed);
  if (executablePath === undefined) throw new Error("There is no browser here");
  const fonts = join(executablePath, "..", FONTS);
  return chromium.launch({
    executablePath,
    // Nothing else: the arguments that `@sparticuz/chromium` offers disable web security, and with it what is tested.
    args: ["--no-sandbox", "--font-render-hinting=none"],
    env: { ...process.env, ...(existsSync(fonts) && { FONTCONFIG_FILE: fonts }) },
  });
}

/** In a process of its own: the package unpacks to TMPDIR, and changes the environment on some systems. */
const UNPACK = `import("@sparticuz/chromium").then(({ default: chromium }) => chromium.executablePath())`;

const FONTS = "lockstep-fonts.conf";

/** The font that the package brings, found wherever it was unpacked, and those of the machine beside it. */
function fontsIn(folder: string): string {
  const prefer = (family: string, font: string) =>
    `<alias binding="same"><family>${family}</family><prefer><family>${font}</family></prefer></alias>`;
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>${folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${folder}/fonts-cache</cachedir>
${["system-ui", "ui-sans-serif", "sans-serif"].map((family) => prefer(family, "Open Sans")).join("\n")}
${["ui-monospace", "monospace"].map((family) => prefer(family, "DejaVu Sans Mono")).join("\n")}
</fontconfig>`;
}

function unpacked(): string {
  const about = readFileSync(join(resolve("@sparticuz/chromium"), "../../package.json"), "utf8");
  const { version } = JSON.parse(about) as { readonly version: string };
  const cache = join(root, "node_modules/.cache/lockstep-browser");
  const folder = join(cache, version);
  if (existsSync(folder)) return join(folder, "chromium");
  // Another process may unpack the same at this moment: the first rename counts.
  const own = join(cache, `unpacking-${process.pid}`);
  mkdirSync(own, { recursive: true });
  const child = spawnSync(process.execPath, ["-e", UNPACK], {
    cwd: root,
    env: { ...process.env, TMPDIR: own },
    encoding: "utf8",
  });
  if (child.status !== 0) throw new Error(`The browser could not be unpacked:\n${child.stderr}`);
  writeFileSync(join(own, FONTS), fontsIn(folder));
  try {
    renameSync(own, folder);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  return join(folder, "chromium");
}

export type Theme = "light" | "dark";
export type Look = { readonly theme?: Theme; readonly width?: number; readonly height?: number };

/** A page with everything that must never happen on it. */
export type Watched = {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts, of the console and of the content policy, and requests that leave the studio. */
  readonly faults: readonly string[];
};

const NOTE_VIOLATIONS = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("content policy: " + event.violatedDirective + " " + event.blockedURI));`;

export async function watchedPage(browser: Browser, look: Look = {}): Promise<Watched> {
  const { theme = "light", width = 1440, height = 900 } = look;
  const context = await browser.newContext({
    colorScheme: theme,
    reducedMotion: "reduce",
    viewport: { width, height },
    locale: "en-GB",
    timezoneId: "UTC",
  });
  context.setDefaultTimeout(60_000);
  await context.addInitScript(NOTE_VIOLATIONS);
  const page = await context.newPage();
  const faults: string[] = [];
  let origin: string | null = null;
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!url.protocol.startsWith("http")) return;
    origin ??= url.origin;
    if (url.origin !== origin) faults.push(`request: ${request.url()}`);
  });
  return { page, context, faults };
}

type Violation = {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
};

const axeSource = () => readFileSync(resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds, a line each. The source is evaluated, as the content policy refuses a script element. */
export async function accessFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource());
  const violations = await page.evaluate<readonly Violation[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)",
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ""}`),
  );
}

/** Runs in the page: what is wider than the window, and texts and buttons that lie on top of one another. */
const BOXES = `(() => {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const cause = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).slice(0, 3);
    found.push("the page is " + wide + " px wide in a window of " + innerWidth + ": " + cause.map((one) => one.tagName + "." + one.className).join(", "));
  }
  const isClipped = (one) => {
    const box = one.getBoundingClientRect();
    for (let up = one.parentElement; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const frame = up.getBoundingClientRect();
      if (box.top >= frame.bottom || box.bottom <= frame.top || box.left >= frame.right || box.right <= frame.left) return true;
    }
    return false;
  };
  // What stays in place while the rest scrolls below it.
  const isOnTop = (one) => {
    for (let up = one; up; up = up.parentElement) if (["sticky", "fixed"].includes(getComputedStyle(up).position)) return true;
    return false;
  };
  const controls = [...document.querySelectorAll("button, a[href], input, select, textarea, h1, h2")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && !one.closest("svg, [hidden], dialog:not([open])") && !isClipped(one) && getComputedStyle(one).visibility !== "hidden";
  });
  const top = controls.filter((one) => one.closest("dialog[open]"));
  const seen = top.length > 0 ? top : controls;
  for (let first = 0; first < seen.length; first += 1)
    for (let second = first + 1; second < seen.length; second += 1) {
      const [a, b] = [seen[first], seen[second]];
      if (a.contains(b) || b.contains(a)) continue;
      if (getComputedStyle(a).position === "absolute" || getComputedStyle(b).position === "absolute") continue;
      const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
      const width = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const height = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      const isStuck = isOnTop(a) || isOnTop(b);
      if (width > 2 && height > 2 && !isStuck)
        found.push("overlap: " + (a.textContent || a.name).slice(0, 40) + " and " + (b.textContent || b.name).slice(0, 40));
    }
  const main = document.querySelector("main");
  const edge = main === null ? innerWidth : main.getBoundingClientRect().right - parseFloat(getComputedStyle(main).paddingRight);
  const scrolls = (one) => {
    for (let up = one.parentElement; up && up !== main; up = up.parentElement) if (getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  for (const one of main === null ? [] : main.querySelectorAll(".card, .command, .note, button, h1, h2")) {
    const { right, width } = one.getBoundingClientRect();
    if (width > 1 && right > edge + 1 && !scrolls(one) && !isOnTop(one)) found.push("beyond the edge: " + one.textContent.slice(0, 40));
  }
  for (const one of document.querySelectorAll("button, h1, h2, th")) {
    const style = getComputedStyle(one);
    if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1)
      found.push("cut: " + one.textContent.slice(0, 40));
  }
  return found.slice(0, 20);
})()`;

export async function boxFaults(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(BOXES);
}

/** Written for people to look at: fonts differ between machines, so that no test compares pixels. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = join(root, "test-output/studio");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.png`), await page.screenshot({ animations: "disabled" }));
}

export function noFaults({ faults }: Watched): void {
  assert.deepEqual(faults, []);
}
