/** How paths and commands are written in what a person reads about git. */

export function namedPaths(changes: readonly { readonly path: string }[]): string {
  const names = changes.slice(0, MOST_NAMED).map(({ path }) => path);
  const more = changes.length - names.length;
  return more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
}

const MOST_NAMED = 5;

/** As one word of a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
