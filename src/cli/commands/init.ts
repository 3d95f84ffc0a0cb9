/** `lockstep init NAME`: an agent of steps, or with `--stages` a machine of stages. */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { errorText } from "../../flow/text/harmless.ts";
import { RunnerError } from "../../run/errors.ts";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { initFiles } from "./init-files.ts";
import { shellWord } from "../text/text.ts";

export function initAgent(call: CallOf<"init">): Promise<number> {
  const [name = ""] = call.words;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new UsageError(
      `"${name}" cannot name an agent: use lower-case letters, digits and single dashes, as in my-agent.`,
    );
  }
  const { agentsDir, root } = findProject(call.cwd);
  const folder = join(agentsDir, name);
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) {
    throw new RunnerError(
      "USAGE",
      `${folder} is there already, and nothing in it is overwritten. Choose another name.`,
    );
  }
  const schemas = schemasFrom(root, folder);
  const texts = initFiles(name, schemas, call.flags.stages ? "stages" : "steps");
  const files = Object.entries(texts).map(([path, text]) => ({ path: join(folder, path), text }));
  try {
    for (const { path, text } of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text, { flag: "wx" });
    }
  } catch (cause) {
    throw new RunnerError(
      "NOT_WRITABLE",
      `The agent cannot be written: ${errorText(cause)}. Make ${root} writable, or choose another folder with --cwd DIR.`,
      { cause },
    );
  }
  const shown = (path: string) => relative(resolve(call.cwd), path);
  const where = call.flags.cwd === undefined ? "" : ` --cwd ${shellWord(call.flags.cwd)}`;
  const next = [
    `lockstep check ${name}${where}`,
    `lockstep test ${name}${where}`,
    `lockstep run ${name} --topic "tides" --script ${shellWord(shown(join(folder, "script.yaml")))}${where}`,
  ];
  if (call.flags.json)
    call.screen.document({ v: 1, agent: name, files: files.map(({ path }) => shown(path)), next });
  else {
    call.screen.print(
      [
        ...files.map(({ path }) => shown(path)),
        "",
        "Next:",
        ...next.map((line) => `  ${call.typed(line)}`),
      ].join("\n"),
    );
  }
  return Promise.resolve(0);
}

/**
 * The schemas for editors, if the project or a folder above it has the package: files are shared, and a path into an
 * installation of this machine would be wrong for everybody else.
 */
function schemasFrom(root: string, folder: string): string | null {
  for (let place = resolve(root); ; place = dirname(place)) {
    const schemas = join(place, "node_modules", "lockstep", "schemas");
    if (existsSync(join(schemas, "agent.schema.json")))
      return relative(resolve(folder), schemas).split(sep).join("/");
    if (place === dirname(place)) return null;
  }
}
