/** `lockstep fleet worker`: drives runs of a fleet until it is stopped or drained. */
import { resolve } from "node:path";
import { hostWorker } from "../../fleet/host.ts";
import type { WorkerEvent } from "../../fleet/worker.ts";
import { EXIT } from "../../flow/verdict.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { networkWish } from "../conduct.ts";
import { readGiven } from "../given-file.ts";
import { duration, jsonLine, shownInLine } from "../text/text.ts";
import { versionText } from "../version.ts";
import { fleetAddress, requireQueue, requireNamed } from "./address.ts";

const DRAIN_MS = 30 * 60_000;

export async function fleetWorker(call: CallOf<"fleet worker">): Promise<number> {
  const { flags, screen, host } = call;
  const { script, network, sandbox, concurrency, name, work: folder, queue } = flags;
  const address = fleetAddress(call);
  if (flags.json && flags.events)
    throw new UsageError("--json and --events cannot be used together: both write to stdout.");
  for (const one of queue) requireQueue(one);
  requireNamed("name", name);
  let [stretches, called] = [0, ""];
  const emit = (what: object) => screen.emit(jsonLine({ v: 1, ...what }));
  const say = (event: WorkerEvent) => {
    if (event.kind === "over") stretches += 1;
    if (flags.events) return emit(documentOf(event));
    const line = workerWords(event, flags.verbose);
    if (line === null) return;
    if (event.kind === "trouble" && event.isLasting) screen.complain(line);
    else screen.tell(line);
  };
  await hostWorker({
    address,
    env: host.env,
    version: versionText(false),
    given: {
      ...(concurrency !== undefined && { concurrency }),
      ...(queue.length > 0 && { queues: queue }),
      ...(folder !== undefined && { work: resolve(call.cwd, folder) }),
      ...(name !== undefined && { name }),
    },
    how: {
      ...(script !== undefined && {
        script: { text: readGiven(call, script, "SCRIPT_INVALID"), file: script },
      }),
      ...(sandbox !== undefined && { sandbox }),
      ...(network !== undefined && { network: networkWish(network) }),
      notify: (text) => screen.complain(shownInLine(text, 500)),
    },
    draining: host.stopped(),
    onEnter: () => void host.interruption(),
    drainMs: flags.within ?? DRAIN_MS,
    onReady: (about) => {
      called = about.name;
      if (flags.events) emit({ kind: "ready", ...about });
      else
        screen.tell(
          `Worker ${shownInLine(about.name, 80)} takes up to ${about.slots} runs from ${about.queues.join(", ")}.`,
        );
    },
    observe: say,
  });
  if (flags.json) screen.document({ v: 1, worker: called, stretches });
  return EXIT.completed;
}

function documentOf(event: WorkerEvent): object {
  switch (event.kind) {
    case "over": {
      const { run, end, isSettled } = event;
      return {
        kind: "over",
        run,
        end: end.kind,
        isSettled,
        ...("code" in end && { code: end.code, reason: end.reason }),
      };
    }
    case "trouble":
      return { kind: "trouble", reason: errorText(event.error), isLasting: event.isLasting };
    default:
      return event;
  }
}

const WHY = {
  lease: "the server could not be reached for most of the lease",
  lost: "another worker has it now",
  drain: "the time to drain is over",
} as const;

/** null: only with --verbose. */
export function workerWords(event: WorkerEvent, verbose: boolean): string | null {
  switch (event.kind) {
    case "began":
      return `${shownInLine(event.run, 80)} ${event.attempt === 0 ? "goes on here" : "is taken over"}.`;
    case "over": {
      const { run, end } = event;
      const why = end.kind === "unavailable" ? ` (${end.code}: ${shownInLine(end.reason, 300)})` : "";
      return `${shownInLine(run, 80)} ${end.kind}${why}.`;
    }
    case "stopped":
      return `${shownInLine(event.run, 80)} is stopped: ${WHY[event.why]}.`;
    case "draining":
      return `Draining: what is under way yields within ${duration(event.withinMs)}.`;
    case "trouble": {
      const said = shownInLine(errorText(event.error), 300);
      if (event.isLasting) return `Trouble, which is shown once: ${said}`;
      return verbose ? `Trouble: ${said}` : null;
    }
    case "recovered":
      return "The trouble is over.";
  }
}
