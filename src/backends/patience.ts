/** How long a request may be silent: a signal that comes when nobody has been heard for too long. */

export type Patience = {
  /** Aborts when the caller stops, or when there was silence for too long. */
  readonly signal: AbortSignal;
  /** Rejects at that moment, and never resolves. */
  readonly over: Promise<never>;
  /** Whether it was silence. */
  readonly isOver: () => boolean;
  readonly end: () => void;
};

export type Ear = {
  readonly patience: (stopped: AbortSignal, silenceMs: number) => Patience;
  /** Every byte that comes in for a request with a patience's signal is a sign of life to it. */
  readonly fetch: typeof globalThis.fetch;
};

export function createEar(fetch: typeof globalThis.fetch): Ear {
  const timers = new WeakMap<AbortSignal, NodeJS.Timeout>();
  return {
    patience: (stopped, silenceMs) => {
      const silence = new AbortController();
      const timer = setTimeout(() => silence.abort(), silenceMs);
      const signal = AbortSignal.any([stopped, silence.signal]);
      timers.set(signal, timer);
      const over = new Promise<never>((_, reject) => {
        const stop = () => reject(new Error("The request was given up."));
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      });
      over.catch(() => undefined);
      return { signal, over, isOver: () => silence.signal.aborted, end: () => clearTimeout(timer) };
    },
    fetch: async (input, init) => {
      // A key goes to the address it was meant for, and not to where that one points.
      const response = await fetch(input, { ...init, redirect: "manual" });
      const timer = init?.signal ? timers.get(init.signal) : undefined;
      timer?.refresh();
      if (timer === undefined || response.body === null) return response;
      return new Response(heard(response.body, timer), response);
    },
  };
}

/** The same bytes. Read only when they are asked for: a transform in between would cost more than the request. */
function heard(body: ReadableStream<Uint8Array>, timer: NodeJS.Timeout): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await reader.read();
        timer.refresh();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: async (reason) => await reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
