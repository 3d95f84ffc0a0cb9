/** Every link of the pages in a folder that leads to no file, one a line, as compilers print their errors. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [folder = "."] = process.argv.slice(2);
for (const name of readdirSync(folder).filter((file) => file.endsWith(".md"))) {
  const page = join(folder, name);
  for (const [index, line] of readFileSync(page, "utf8").split("\n").entries()) {
    for (const [, target] of line.matchAll(/\]\(([^):]+)\)/g)) {
      if (existsSync(join(dirname(page), target))) continue;
      console.error(`${page}:${index + 1}: error: there is no ${target}`);
      process.exitCode = 1;
    }
  }
}
