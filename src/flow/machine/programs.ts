/** The programs that Lockstep starts by itself, each by its absolute path. */

/** null: it is not installed, or only where a project or a run could have put it. */
export type Programs = { readonly [name in ProgramName]: string | null } & {
  /** The user's PATH without the folders that do not count: what git and gh find their own helpers by. */
  readonly path: string;
};

export type ProgramName = (typeof PROGRAM_NAMES)[number];

export const PROGRAM_NAMES = ["git", "gh", "rg", "bash", "bwrap", "socat"] as const;

/** Where POSIX systems have it; `system()` of the C library starts the same. */
export const SHELL = "/bin/sh";

/** Any name of a program that is not there: starting it fails as a program that is not installed. */
export const NOT_INSTALLED = "/nonexistent/lockstep-not-installed";
