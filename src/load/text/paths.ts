/** Paths as the pure rooms see them: relative to the project root, forward slashes, no links followed. */

/** `path` seen from the folder `base`, without `.` and `..` where they can be resolved. An absolute path stays as it is. */
export function joinPath(base: string, path: string): string {
  if (isAbsolute(path)) return path;
  const parts: string[] = [];
  for (const part of `${base}/${path}`.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else parts.push(part);
  }
  return parts.join("/");
}

export function parentFolder(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Whether a joined path leads out of the project. Links are the reader's business. */
export function escapesProject(path: string): boolean {
  return isAbsolute(path) || path === ".." || path.startsWith("../") || path.includes("\0");
}

function isAbsolute(path: string): boolean {
  return path.startsWith("/") || path.includes("\\") || /^[A-Za-z]:/.test(path);
}
