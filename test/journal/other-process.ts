/**
 * A journal in a process of its own, told what to do line by line on stdin; each line is answered by one on stdout.
 * Not a test: the `.proc.ts` files start it, stop it and kill it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Journal, RunHandle } from "../../src/engine/ports.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";

/** What the other process can be told. All but `open` need a journal that is open. */
export type Order =
  | { readonly do: "open" }
  | { readonly do: "create" | "claim" | "read"; readonly run: string }
  | { readonly do: "append"; readonly run: string; readonly seq: number; readonly bytes?: number }
  | { readonly do: "list" | "close" }
  /** Uses up all room beside the journal, or gives it back. */
  | { readonly do: "fill" | "clear" };

export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: string; readonly message: string };

export type OtherProcess = {
  readonly pid: number;
  readonly tell: (order: Order) => Promise<Answer>;
  /** Resolves when the process is gone. */
  readonly kill: () => Promise<void>;
  readonly signal: (signal: "SIGSTOP" | "SIGCONT") => void;
};

/** `wrap` puts words before the command line: to run it in a mount namespace, for instance. */
export function startProcess(directory: string, wrap: readonly string[] = []): OtherProcess {
  const [command, ...args] = [...wrap, process.execPath, import.meta.filename, directory];
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const gone = ended(child);
  return {
    pid: child.pid ?? 0,
    async tell(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      const { value, done } = await answers.next();
      if (done === true) throw new Error(`the other process ended instead of answering ${order.do}`);
      return JSON.parse(value) as Answer;
    },
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
    signal: (signal) => void child.kill(signal),
  };
}

export function waited(seq: number): Entry {
  return { seq, at: 1_000 + seq, event: { type: "step.waited", step: "s", visit: seq, ms: 5 } };
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("close", () => resolve());
  });
}

function createWorker(directory: string) {
  const handles = new Map<string, RunHandle>();
  const ballast = join(directory, "ballast");
  let opened: Journal | undefined;

  const journal = (): Journal => {
    if (opened === undefined) throw new Error("no journal is open");
    return opened;
  };
  const keep = (handle: RunHandle) => {
    handles.set(handle.run, handle);
    return { epoch: handle.epoch };
  };

  return async (order: Order): Promise<unknown> => {
    switch (order.do) {
      case "open":
        opened = await openSqliteJournal({
          directory,
          now: Date.now,
          ownerId: randomUUID(),
          pid: process.pid,
        });
        return null;
      case "create": {
        const flow = { ir: 1 } as unknown as Flow;
        return keep(await journal().create({ id: order.run, agent: "agent", at: 1, digest: "d1", flow }));
      }
      case "claim":
        return keep(await journal().claim(order.run));
      case "append":
        await handles.get(order.run)?.append([padded(waited(order.seq), order.bytes ?? 0)]);
        return null;
      case "read":
        return (await journal().read(order.run)).map(({ seq }) => seq);
      case "list":
        return journal().list();
      case "close":
        await journal().close();
        return null;
      case "fill":
        return fill(ballast);
      case "clear":
        rmSync(ballast);
        return null;
    }
  };
}

function padded(entry: Entry, bytes: number): Entry {
  return { ...entry, led: { step: "s", visit: 1, label: "x".repeat(bytes), to: null } };
}

/** Writes until not one byte more goes in. */
function fill(file: string): unknown {
  const fd = openSync(file, "w");
  try {
    for (let size = 65_536; size >= 1;) {
      try {
        if (writeSync(fd, Buffer.alloc(size)) < size) size = Math.floor(size / 2);
      } catch {
        size = Math.floor(size / 2);
      }
    }
  } finally {
    closeSync(fd);
  }
  return null;
}

if (import.meta.main) {
  const obey = createWorker(process.argv[2] ?? "");
  for await (const line of createInterface({ input: process.stdin })) {
    const answer: Answer = await obey(JSON.parse(line) as Order).then(
      (value) => ({ ok: true, value }),
      (error: Error & { code?: string }) => ({ ok: false, code: error.code ?? "", message: error.message }),
    );
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
