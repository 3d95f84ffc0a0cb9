/** What is derived from an object: worked out when it is first asked for, shared by all that hold the object, and forgotten with it. */
export function cached<K extends object, V>(derive: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = derive(key);
    known.set(key, made);
    return made;
  };
}
