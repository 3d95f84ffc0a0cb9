/** A value that parts of the page share, and a hook that redraws a part when what it picked has changed. */
import { useEffect, useState } from "preact/hooks";

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
  const [picked, setPicked] = useState(() => pick(store.get()));
  useEffect(() => {
    const look = () => setPicked(() => pick(store.get()));
    look();
    return store.listen(look);
  }, [store]);
  return picked;
}
