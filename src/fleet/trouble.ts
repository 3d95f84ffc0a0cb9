/** Trouble of a worker with the server, the queue or its disk: from when on it is lasting, so that it is said once and others see it. */
import { errorText } from "../flow/text/harmless.ts";

/** What a worker does again and again. */
export type WorkerPart = "poll" | "keep" | "tend" | "settle";

export type Troubles = {
  /** True where the worker is in lasting trouble from now on. */
  readonly failed: (part: WorkerPart, error: unknown) => boolean;
  /** True where the worker was in lasting trouble and is well from now on. */
  readonly worked: (part: WorkerPart) => boolean;
  /** What is said about it; null: the worker is well. */
  readonly lasting: () => string | null;
};

/** So often in a row: a connection that broke, or a server that is started anew, is not worth a line. */
const LASTING_ROUNDS = 3;

export function createTroubles(): Troubles {
  const failing = new Map<WorkerPart, { readonly rounds: number; readonly reason: string }>();
  const lasting = () => [...failing.values()].find(({ rounds }) => rounds >= LASTING_ROUNDS)?.reason ?? null;
  return {
    lasting,
    failed(part, error) {
      const before = lasting();
      const rounds = (failing.get(part)?.rounds ?? 0) + 1;
      failing.set(part, { rounds, reason: errorText(error) });
      return before === null && lasting() !== null;
    },
    worked(part) {
      const before = lasting();
      failing.delete(part);
      return before !== null && lasting() === null;
    },
  };
}
