/** Where a file of this package is: beside src/ in a clone, beside dist/ where it is installed (every room lies two folders deep). */

/** `path` is relative to the package's folder. */
export function packageFile(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
