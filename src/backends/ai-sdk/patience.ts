/** How long a request may be silent: a signal that comes when nothing has been received for too long. */

export type ModelPatience = {
  /** Aborts when the caller stops, or when there was silence for too long. */
  readonly signal: AbortSignal;
  /** Rejects at that moment, and never resolves. */
  readonly over: Promise<never>;
  /** Whether it was silence. */
  readonly isOver: () => boolean;
  /** Something was received: the silence starts again. */
  readonly heard: () => void;
  readonly end: () => void;
};

export function createPatience(stopped: AbortSignal, silenceMs: number): ModelPatience {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  const signal = AbortSignal.any([stopped, silence.signal]);
  const over = new Promise<never>((_, reject) => {
    const stop = () => reject(new Error("The request was given up."));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  over.catch(() => undefined);
  return {
    signal,
    over,
    isOver: () => silence.signal.aborted,
    heard: () => void timer.refresh(),
    end: () => clearTimeout(timer),
  };
}
