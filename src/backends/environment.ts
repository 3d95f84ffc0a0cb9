/** What a coding agent sees of the user's environment: enough to work and to reach its provider, and no key but its own. */

import { WARY, withSettings } from "../flow/machine/git-variables.ts";

export type Environment = { readonly [name: string]: string };

/** `also`: further names that may pass. */
export function passOn(env: NodeJS.ProcessEnv, also: (name: string) => boolean): Environment {
  const passed = Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && (USUAL.test(name) || also(name)) ? [[name, value] as const] : [],
    ),
  );
  // Last, so that no setting that the user passes on takes the place of ours.
  return { ...passed, ...withSettings(passed, WARY) };
}

const USUAL = new RegExp(
  `^(?:${[
    "PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|SHELL|USER|LOGNAME|TZ|CI|NO_COLOR|LOCKSTEP_TREE",
    "Path|SystemRoot|SYSTEMROOT|windir|ComSpec|COMSPEC|PATHEXT|TEMP|TMP|USERPROFILE|APPDATA|LOCALAPPDATA",
    "(?:HTTPS?|NO)_PROXY|(?:https?|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE",
  ].join("|")})$`,
);
