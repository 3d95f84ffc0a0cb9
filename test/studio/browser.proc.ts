/** The browser that tests the studio's page is as strict as that of a user, or every test of security passes for nothing. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { Browser } from "playwright-core";
import { accessFaults, boxFaults, openBrowser, watchedPage, withBrowser } from "./browser.ts";

describe("the browser of the tests", withBrowser, () => {
  let browser: Browser;
  const servers: Server[] = [];

  before(async () => (browser = await openBrowser()));
  after(async () => {
    await browser.close();
    for (const server of servers) server.close();
  });

  async function serve(html: string, policy?: string): Promise<string> {
    const server = createServer((_request, response) => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      if (policy !== undefined) response.setHeader("content-security-policy", policy);
      response.end(html);
    });
    servers.push(server);
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  test("it refuses to read a page of another port", async () => {
    const secret = await serve("<!doctype html><title>ours</title>");
    const { page, context } = await watchedPage(browser);
    await page.goto(await serve("<!doctype html><title>theirs</title>"));
    const read = await page.evaluate<string>(
      `fetch(${JSON.stringify(secret)}).then((answer) => answer.text(), (error) => "refused: " + error.name)`,
    );
    await context.close();
    assert.equal(read, "refused: TypeError");
  });

  const button = `<button style="width:10em;height:2em">a</button>`;
  for (const [name, html, policy, expected] of [
    ["nothing", `<main><h1>fine</h1></main>`, undefined, []],
    ["a script error", `<script>throw new Error("bad")</script>`, undefined, ["script: bad"]],
    [
      "a request elsewhere",
      `<img alt="" src="http://localhost:9/x.png">`,
      undefined,
      ["request: http://localhost:9/x.png"],
    ],
    ["a dialog", `<script>alert("hello")</script>`, undefined, ["dialog: hello"]],
    [
      "what the policy refuses",
      `<script>document.title = "ran"</script>`,
      "script-src 'none'",
      ["console: content policy: script-src"],
    ],
  ] as const)
    test(`it reports ${name}`, async () => {
      const watched = await watchedPage(browser);
      await watched.page.goto(
        await serve(`<!doctype html><html lang="en"><title>t</title>${html}</html>`, policy),
      );
      // What the page reported before this answer has arrived by then.
      await watched.page.evaluate("0");
      await watched.context.close();
      for (const start of expected)
        assert.ok(
          watched.faults.some((fault) => fault.startsWith(start)),
          `${start}: ${watched.faults.join("\n")}`,
        );
      if (expected.length === 0) assert.deepEqual(watched.faults, []);
    });

  for (const [name, html, boxes, access] of [
    ["a sound page", `${button}${button}`, null, null],
    ["a page that is too wide", `<div style="width:3000px">x</div>`, /px wide/, null],
    [
      "buttons on top of one another",
      `${button}<div style="margin-top:-1em">${button}</div>`,
      /^overlap: a and a$/,
      null,
    ],
    [
      "a button with a cut text",
      `<button style="width:2em;overflow:hidden;white-space:nowrap">a long text</button>`,
      /^cut: a long text$/,
      null,
    ],
    ["text that is too pale", `<p style="color:#ccc;background:#fff">pale</p>`, null, /^color-contrast/],
  ] as const)
    test(`it looks at ${name}`, async () => {
      const { page, context } = await watchedPage(browser);
      await page.goto(
        await serve(`<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>${html}</main></html>`),
      );
      const [box, axe] = [await boxFaults(page), await accessFaults(page)];
      await context.close();
      for (const [found, pattern] of [
        [box, boxes],
        [axe, access],
      ] as const)
        if (pattern === null) assert.deepEqual(found, []);
        else assert.match(found.join("\n"), pattern);
    });
});
