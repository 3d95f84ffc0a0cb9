/** What a coding agent sees of the user's environment: enough to work and to reach its provider, and no key but its own. */

export type Environment = { readonly [name: string]: string };

/** `also`: further names that may pass. */
export function passOn(env: NodeJS.ProcessEnv, also: (name: string) => boolean): Environment {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value !== undefined && (USUAL.test(name) || also(name)) ? [[name, value] as const] : [],
    ),
  );
}

const USUAL = new RegExp(
  `^(?:${[
    "PATH|HOME|LANG|LC_[A-Z]+|TERM|TMPDIR|SHELL|USER|LOGNAME|TZ|CI|NO_COLOR",
    "Path|SystemRoot|SYSTEMROOT|windir|ComSpec|COMSPEC|PATHEXT|TEMP|TMP|USERPROFILE|APPDATA|LOCALAPPDATA",
    "(?:HTTPS?|NO)_PROXY|(?:https?|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE",
  ].join("|")})$`,
);
