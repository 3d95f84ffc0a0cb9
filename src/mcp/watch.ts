/** Notices that other tools would be offered now: files of agents changed, or the user trusted one. */
import { setTimeout as sleep } from "node:timers/promises";
import type { McpGround } from "./ground.ts";
import { offeredTools } from "./offer.ts";

/** Trust is given in another process and in another folder: it is asked for now and then. */
const EVERY_MS = 2000;

/** Until the server closes. */
export function watchTools(ground: McpGround, changed: () => void): void {
  void watch(ground, changed);
}

async function watch(ground: McpGround, changed: () => void): Promise<void> {
  let before: string | null = null;
  while (!ground.signal.aborted) {
    const now = await fingerprint(ground);
    if (before !== null && now !== null && now !== before) changed();
    before = now ?? before;
    await sleep(EVERY_MS, undefined, { signal: ground.signal, ref: false }).catch(() => undefined);
  }
}

/** null: it cannot be known at the moment. */
async function fingerprint(ground: McpGround): Promise<string | null> {
  try {
    const tools = await offeredTools(ground, true);
    return JSON.stringify(
      tools.map(({ name, title, description, inputSchema }) => [name, title, description, inputSchema]),
    );
  } catch {
    return null;
  }
}
