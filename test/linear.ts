/** Whether work takes time in proportion to the length of a text. */
import assert from "node:assert/strict";

/**
 * Eight times the text must take far less than sixty-four times the work. `from`: the length of the shorter text.
 * Processor time and not the clock: others may be busy. The least of a few tries, since a pause may fall into any.
 */
export async function assertLinear(
  work: (text: string) => unknown,
  unit: string,
  end = "",
  from = 2_000,
): Promise<void> {
  let [short, long] = [Infinity, Infinity];
  // A few hundredths of a second are harmless, and too little to compare.
  const isLinear = () => long < 60_000 || long < 32 * short;
  for (let round = 0; round < 10 && !isLinear(); round += 1) {
    const text = (length: number) => unit.repeat(Math.ceil(length / unit.length)) + end;
    short = Math.min(short, await cost(work, text(from)));
    long = Math.min(long, await cost(work, text(8 * from)));
  }
  assert.ok(isLinear(), `${JSON.stringify(unit + end)}: ${short} → ${long} µs`);
}

async function cost(work: (text: string) => unknown, text: string): Promise<number> {
  const from = process.cpuUsage();
  await work(text);
  const { user, system } = process.cpuUsage(from);
  return user + system;
}
