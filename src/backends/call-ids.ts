/** The ids of the calls in one response. Each result is found by the id of its call, so no two calls may have the same one. */

/** Keeps what the model gave where it can. `key` and `place` make an id that no other response has. */
export function createCallIds(key: string): (given: string | undefined, place: number) => string {
  const taken = new Set<string>();
  return (given, place) => {
    let id = given === undefined || given === "" || taken.has(given) ? `${key}#${place + 1}` : given;
    while (taken.has(id)) id += "+";
    taken.add(id);
    return id;
  };
}
