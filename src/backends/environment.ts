/** What a coding agent sees of the user's environment: enough to work and to reach its provider, and no key but its own. */

export type Environment = { readonly [name: string]: string };

/** `also`: further names that may pass. */
export function passOn(env: NodeJS.ProcessEnv, also: (name: string) => boolean): Environment {
  const passed = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && (USUAL.test(name) || also(name)) ? [[name, value] as const] : [],
  );
  return { ...WARY, ...Object.fromEntries(passed) };
}

/** A folder that only looks like a repository is none for its git either: any tool could write one. */
const WARY: Environment = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.bareRepository",
  GIT_CONFIG_VALUE_0: "explicit",
};

const USUAL = new RegExp(
  `^(?:${[
    "PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|SHELL|USER|LOGNAME|TZ|CI|NO_COLOR",
    "Path|SystemRoot|SYSTEMROOT|windir|ComSpec|COMSPEC|PATHEXT|TEMP|TMP|USERPROFILE|APPDATA|LOCALAPPDATA",
    "(?:HTTPS?|NO)_PROXY|(?:https?|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE",
  ].join("|")})$`,
);
