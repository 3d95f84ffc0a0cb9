/**
 * Looks at the pages of a folder that git finds changed or new: there is one, no placeholder is left, every fence is closed,
 * and every relative link leads to a file. Prints one line for each problem, as compilers do.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [folder = "docs"] = process.argv.slice(2);
const git = spawnSync("git", ["ls-files", "-z", "--modified", "--others", "--exclude-standard", "--", folder], {
  encoding: "utf8",
});
if (git.status !== 0) fail(`${folder}:1: error: git does not list the changed pages: ${git.stderr}`);
const pages = [...new Set((git.stdout ?? "").split("\0"))].filter((path) => path.endsWith(".md") && existsSync(path));
if (pages.length === 0) fail(`${folder}:1: error: no page below ${folder}/ was written or changed`);

for (const page of pages) {
  let fence = 0;
  for (const [index, line] of readFileSync(page, "utf8").split("\n").entries()) {
    const at = `${page}:${index + 1}: error:`;
    if (/^\s*(```|~~~)/.test(line)) fence = fence === 0 ? index + 1 : 0;
    if (fence !== 0) continue;
    const [placeholder] = /\b(?:TODO|TBD|FIXME|XXX)\b/.exec(line) ?? [];
    if (placeholder !== undefined) fail(`${at} the placeholder ${placeholder} is left`);
    for (const [, target] of line.matchAll(/\]\(<?([^()<>\s#]+)(?:#[^()<>\s]*)?>?(?:\s+"[^"]*")?\)/g))
      if (!leadsSomewhere(page, target)) fail(`${at} the link to ${target} leads nowhere`);
  }
  if (fence !== 0) fail(`${page}:${fence}: error: the block of code is not closed`);
}

/** Other sites are not asked. A link that begins with a slash is meant from the root of the repository. */
function leadsSomewhere(page, target) {
  if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(target)) return true;
  const from = target.startsWith("/") ? "." : dirname(page);
  return existsSync(join(from, target)) || existsSync(join(from, target.replaceAll("%20", " ")));
}

function fail(problem) {
  console.error(problem);
  process.exitCode = 1;
}
