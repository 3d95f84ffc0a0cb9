/** The queue of jobs in memory. */
import type { TransactionSend } from "../../src/fleet/dispatch.ts";
import { createMemoryDispatch } from "../../src/fleet/memory.ts";
import { describeDispatch } from "./dispatch-suite.ts";

describeDispatch("memory", () => {
  let now = 0;
  const dispatch = createMemoryDispatch(10_000, () => now);
  const never: TransactionSend = () => Promise.reject(new Error("memory sends nothing"));
  return Promise.resolve({
    dispatch,
    within: (work) => work(never),
    passLease: () => Promise.resolve(void (now += 10_001)),
  });
});
