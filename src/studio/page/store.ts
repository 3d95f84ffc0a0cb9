/** A value that parts of the page share, and a hook that redraws a part when what it picked has changed. */
import { useEffect, useRef, useState } from "preact/hooks";

export type Store<T> = {
  readonly get: () => T;
  readonly set: (change: (now: T) => T) => void;
  /** Returns how to stop listening. */
  readonly listen: (listener: () => void) => () => void;
};

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (change) => {
      const next = change(value);
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    listen: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What `pick` gives is compared by identity: pick parts of the value, and make nothing new. */
export function useStore<T, P>(store: Store<T>, pick: (value: T) => P): P {
  const [, redraw] = useState(0);
  const picked = pick(store.get());
  // A part may be drawn for something else before it listens again: the newest question counts.
  const held = useRef({ pick, picked });
  held.current = { pick, picked };
  useEffect(() => {
    const look = () => {
      if (!Object.is(held.current.pick(store.get()), held.current.picked)) redraw((times) => times + 1);
    };
    look();
    return store.listen(look);
  }, [store]);
  return picked;
}
