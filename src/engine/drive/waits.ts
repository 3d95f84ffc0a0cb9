/** When the waits of a run end, and whether there is nothing else to do for long. */
import { visitKey } from "../../flow/deed.ts";
import type { Command, StepCommand } from "../../flow/command.ts";
import type { Event, Waiting } from "../../flow/event.ts";
import type { Clock } from "../ports.ts";

export type Waits = {
  readonly begin: (command: StepCommand) => void;
  readonly note: (event: Event) => void;
  /** Those that are not over. */
  readonly open: (pending: readonly Command[]) => readonly Waiting[];
  /** Whether all that is left to do is to wait, for longer than a process should. */
  readonly isLong: (pending: readonly Command[]) => boolean;
};

/** `isYielding`: whether the run may be asked to yield; otherwise, and without `mostMs`, no end is of interest. */
export function createWaits(
  { now }: Pick<Clock, "now">,
  mostMs: number | undefined,
  isYielding: boolean,
): Waits {
  const isNoted = mostMs !== undefined || isYielding;
  const ends = new Map<string, number>();
  const openAt = (at: number, pending: readonly Command[]): readonly Waiting[] =>
    pending.flatMap((one) => {
      if (one.type !== "wait") return [];
      const { step, visit, ms } = one;
      return [{ step, visit, until: ends.get(visitKey(one)) ?? at + ms }];
    });
  return {
    begin: (command) => {
      if (isNoted && command.type === "wait") ends.set(visitKey(command), now() + command.ms);
    },
    note: (event) => {
      if (event.type === "step.waited") ends.delete(visitKey(event));
    },
    open: (pending) => openAt(now(), pending),
    isLong: (pending) => {
      if (mostMs === undefined || pending.length === 0) return false;
      if (pending.some(({ type }) => type !== "wait")) return false;
      const from = now();
      return openAt(from, pending).every(({ until }) => until - from > mostMs);
    },
  };
}
