/** Where a page of the documentation is on this machine. */
import { packageFile } from "./package-file.ts";

/** The absolute path, for messages: `docs/x.md` means nothing to a user who has the package in node_modules. */
export function manual(page: string): string {
  return decodeURIComponent(packageFile(`docs/${page}.md`).pathname);
}
