/** Every agent of examples/, loaded and prepared, for tests about all of them. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Prepared } from "../../src/engine/schema/prepared.ts";
import { load, type LoadedAgent } from "../../src/run/load.ts";
import { prepareFlow } from "../../src/testing/flow-tests.ts";

const root = new URL("../../examples/", import.meta.url).pathname;

export type ExampleAgent = {
  readonly name: string;
  readonly folder: string;
  readonly loaded: LoadedAgent;
  readonly flow: Prepared;
};

export async function exampleAgents(): Promise<readonly ExampleAgent[]> {
  const folders = readdirSync(root).filter((name) => /^\d/.test(name));
  const found: ExampleAgent[] = [];
  for (const folder of folders.toSorted())
    for (const agent of readdirSync(join(root, folder, ".agent"))) {
      const loaded = await load(agent, { cwd: join(root, folder) });
      if (loaded.flow === null) continue;
      const flow = await prepareFlow(loaded.flow);
      found.push({ name: `${folder} ${agent}`, folder: join(root, folder), loaded, flow });
    }
  return found;
}
