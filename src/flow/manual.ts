/** Where a page of the documentation is on this machine: beside src/ in a clone, beside dist/ where it is installed. */

/** The absolute path, for messages: `docs/x.md` means nothing to a user who has the package in node_modules. */
export function manual(page: string): string {
  return decodeURIComponent(new URL(`../../docs/${page}.md`, import.meta.url).pathname);
}
