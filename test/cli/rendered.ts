/** A stream that keeps what is written, and a run under way, for tests of what the command shows. */
import type { Manners } from "../../src/cli/screen.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import type { CheckResult, Entry } from "../../src/flow/event.ts";
import type { DriveOptions } from "../../src/run/index.ts";

export const plain = createPaint(false);

export const check: CheckResult = { name: "tests", ok: false, pattern: "red", summary: "2 fail", params: {} };

export type State = Parameters<NonNullable<DriveOptions["observe"]>>[1];
export const lane = {
  step: "a",
  visit: 2,
  say: [],
  command: { type: "check", step: "a", visit: 2, attempt: 1 },
};
export const state = {
  run: "r",
  iterations: 3,
  lanes: [lane],
  pending: [],
  last: { label: "next" },
} as unknown as State;

export const entry = (event: unknown, led?: Entry["led"]): Entry =>
  ({ seq: 1, at: 1, event, ...(led === undefined ? {} : { led }) }) as Entry;

export const manners: Manners = { quiet: false, color: null };
export const stream = (isTTY: boolean) => {
  const written: string[] = [];
  return { isTTY, columns: 40, write: (text: string) => written.push(text), written };
};
