/** How long a request may be silent: a signal that comes when nobody has been heard for too long. */

export type Patience = {
  /** Aborts when the caller stops, or when there was silence for too long. */
  readonly signal: AbortSignal;
  /** Rejects at that moment, and never resolves. */
  readonly over: Promise<never>;
  /** Whether it was silence. */
  readonly isOver: () => boolean;
  /** Every byte that comes in counts as a sign of life. */
  readonly fetch: typeof globalThis.fetch;
  readonly end: () => void;
};

export function createPatience(
  stopped: AbortSignal,
  silenceMs: number,
  fetch: typeof globalThis.fetch,
): Patience {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  const signal = AbortSignal.any([stopped, silence.signal]);
  const over = new Promise<never>((_, reject) => {
    const stop = () => reject(new Error("The request was given up."));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  over.catch(() => undefined);
  const sign = () => void timer.refresh();
  return {
    signal,
    over,
    isOver: () => silence.signal.aborted,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      sign();
      return response.body === null
        ? response
        : new Response(response.body.pipeThrough(listener(sign)), response);
    },
    end: () => clearTimeout(timer),
  };
}

function listener(sign: () => void): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform: (chunk, controller) => {
      sign();
      controller.enqueue(chunk);
    },
  });
}
