/** What other processes want of a run that is being driven: to pause or to stop. */
import type { ControlWish, Mail } from "../../flow/mail.ts";

export type Wishes = {
  readonly pause: AbortSignal;
  readonly stop: AbortSignal;
  /** Looks no more, and takes away what was heeded. */
  readonly close: () => Promise<void>;
};

export function hearWishes(mail: Mail, run: string): Wishes {
  const controls = { pause: new AbortController(), stop: new AbortController() };
  const unhear = mail.hearWishes(run, (wish: ControlWish) => {
    if (wish !== "continue") controls[wish].abort();
  });
  return {
    pause: controls.pause.signal,
    stop: controls.stop.signal,
    async close() {
      unhear();
      for (const wish of ["pause", "stop"] as const)
        if (controls[wish].signal.aborted) await mail.forgetWish(run, wish);
    },
  };
}
