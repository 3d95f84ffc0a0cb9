/** The token of the server that the page belongs to: every request carries it. */

const KEY = "lockstep-token";

/** The token comes once in the fragment of the address; it is kept, and taken out of the address. */
export function takeToken(): boolean {
  const found = /^#(?:token=)?([A-Za-z0-9_-]{20,})$/.exec(location.hash);
  if (found === null) return false;
  localStorage.setItem(KEY, found[1]!);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

export function hasToken(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function authorized(): { readonly authorization: string } {
  return { authorization: `Bearer ${localStorage.getItem(KEY) ?? ""}` };
}
