/** One after the other: for what several runs of this process must not do to the same thing at the same time. */

const lasts = new Map<string, Promise<unknown>>();

/** Does the work when all that was begun before under the same name has ended, however that went. */
export async function inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
  const before = lasts.get(name);
  const mine = before === undefined ? work() : before.then(work, work);
  lasts.set(name, mine);
  try {
    return await mine;
  } finally {
    if (lasts.get(name) === mine) lasts.delete(name);
  }
}
