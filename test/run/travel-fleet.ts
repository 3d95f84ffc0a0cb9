/** A fleet in one process: runs are submitted from a real repository, and driven in the folders of workers. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Backend, Blobs, Journal } from "../../src/engine/ports.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { travelling } from "../../src/run/source-place.ts";
import { findSource, type SourceKind } from "../../src/run/source.ts";
import { driveStretch, type StretchEnd, type StretchOptions } from "../../src/run/stretch.ts";
import { prepareRun, type PrepareOptions } from "../../src/run/submit.ts";
import { WORKER, type Repository } from "./repository.ts";

export const never = new AbortController().signal;

/** Submitting and driving apart. `journal`: where it is recorded; in memory unless given, and so are the blobs. */
export function createFleet(world: Repository, journal: Journal = createMemoryJournal()) {
  const stored = new Map<string, Uint8Array>();
  const blobs: Blobs = journal.blobs ?? {
    put: async (_run, bytes) => {
      const digest = createHash("sha256").update(bytes).digest("hex");
      stored.set(digest, Uint8Array.from(bytes));
      return digest;
    },
    get: async (digest) => stored.get(digest) ?? null,
  };
  const env = { ...world.env, LOCKSTEP_TRUST: "all" };
  return {
    journal,
    blobs,
    submit: async (kind: SourceKind = "git", options: Partial<PrepareOptions> = {}) => {
      const found = await findSource(kind, world.home, options, { env, signal: never });
      const prepared = await prepareRun({ agent: WORKER, cwd: world.home, env, found, ...options });
      const { id } = prepared.run;
      const handle = await journal.create(prepared.run, prepared.entries);
      await handle.release();
      if (found.bundle !== null) await blobs.put(id, found.bundle);
      return id;
    },
    drive: async (
      run: string,
      work: string,
      backend: Backend,
      more: Partial<StretchOptions> & { readonly through?: Journal } = {},
    ): Promise<StretchEnd> => {
      const { through = journal, ...options } = more;
      return await driveStretch({
        journal: through,
        run,
        place: travelling({
          work: join(world.temp, work),
          blobs,
          repositories: ["file://**"],
          env,
          signal: never,
        }),
        stateDir: join(world.temp, work, "state"),
        takeOver: true,
        yieldSignal: never,
        stopSignal: never,
        parkMs: 30_000,
        env,
        backend,
        sandbox: "off",
        ...options,
      });
    },
    entries: (run: string) => journal.read(run),
  };
}

/** A model that knows from what was said how far it is: it calls Bash with each line, and closes. */
export function working(lines: readonly string[]): Backend & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    spec: { id: "ai-sdk", options: {} },
    free: true,
    turn: async ({ asker: { step }, messages }) => {
      const said = messages.filter(({ role }) => role === "assistant").length;
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: 0 };
      const command = step === "initial.work" ? lines[said] : undefined;
      asked.push(`${step} ${said}`);
      if (command !== undefined)
        return {
          kind: "reply",
          text: "",
          calls: [{ id: `call-${said}`, name: "Bash", input: { command } }],
          usage,
        };
      const action = step === "initial.work" ? "handoff" : "closing";
      return { kind: "reply", text: "", calls: [], output: { stepId: step, next_action: { action } }, usage };
    },
  };
}
