/** What the boundaries cost: the judgement about one tool call, and looking through one text for secrets. */
import { createGate } from "../src/testing/gate.ts";
import { median, micro, row, type Row } from "./measure.ts";

const CALLS = 2_000;
const ROUNDS = 21;

export async function measureGate(): Promise<readonly Row[]> {
  const { cases, look, text } = createGate();
  const judged = cases.map(({ name, judge }) => ({ name, us: time(judge) * 1000 }));
  const worst = judged.reduce((a, b) => (a.us > b.us ? a : b));
  const each = judged.map(({ name, us }) => `${name} ${us.toFixed(2)}`).join(", ");
  const looked = time(look);
  return [
    row("the gate, per tool call", worst.us, "us", 5, `the slowest of: ${each}`),
    row(
      "looking for secrets, per KB",
      (looked * 1000 * 1024) / text.length,
      "us",
      null,
      `${micro(looked)} for ${text.length} characters of code`,
    ),
  ];
}

/** Milliseconds of one call. */
function time(work: () => unknown): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const from = performance.now();
    for (let count = 0; count < CALLS; count++) work();
    return (performance.now() - from) / CALLS;
  });
  return median(rounds);
}
