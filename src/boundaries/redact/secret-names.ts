/** Which values of an environment are secrets: recognised by variable names and by the form of the values. */
import { ENV_REFERENCE } from "../../flow/mcp.ts";
import { SHORTEST } from "./secret-forms.ts";

type Variables = { readonly [name: string]: string | undefined };

/** The values of variables that are called like secrets, and the passwords in addresses, whatever those are called. */
export function secretsIn(env: Variables): readonly string[] {
  return Object.entries(env).flatMap(([name, value = ""]) => {
    if (value.length < SHORTEST) return [];
    const parts = credentialsIn(value);
    return isSecret(name, value) ? [value].concat(parts) : parts;
  });
}

/** Values that somebody says are secret by naming their variables: only what is nothing but an ordinary word is left out. */
export function secretValues(names: Iterable<string>, env: Variables): readonly string[] {
  return [...names].flatMap((name) => {
    const value = env[name] ?? "";
    return isPlace(value) || WORDS.test(value) ? [] : [value];
  });
}

/**
 * The values of headers as far as the user wrote them out, whole and without the scheme before them (`Bearer x`): of what
 * is sent to a gateway only the usual headers about the request itself are known to be harmless.
 */
export function secretsInHeaders(headers: Variables): readonly string[] {
  return Object.entries(headers).flatMap(([name, value = ""]) => {
    if (ABOUT_REQUEST.test(name)) return [];
    const parts = value.replaceAll(ENV_REFERENCE, "\n").split("\n");
    return parts.flatMap(secretsInHeader).filter((one) => one.length >= SHORTEST && !isOrdinary(one));
  });
}

function secretsInHeader(part: string): readonly string[] {
  const whole = part.trim();
  const [, bare = whole] = /^[A-Za-z][\w-]{0,20}[ \t]{1,8}(\S+)$/.exec(whole) ?? [];
  return /^basic\s/i.test(whole) ? [whole, bare, passwordOf(bare)] : [whole, bare];
}

const ABOUT_REQUEST =
  /^(?:accept(?:-.*)?|content-.*|cache-control|user-agent|origin|(?:http-)?referer|x-title|anthropic-(?:beta|version)|openai-beta)$/i;

/** What lets somebody in, in an address with a user, a connection string made of pairs, or an authorization header. */
export function credentialsIn(text: string): readonly string[] {
  if (!/:\/\/|;|authorization/i.test(text)) return [];
  const passwords = [IN_ADDRESS, IN_PAIRS].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, one = ""]) => one),
  );
  const headers = [...text.matchAll(IN_HEADER)].flatMap(([, scheme = "", one = ""]) =>
    scheme.toLowerCase() === "basic" ? [one, passwordOf(one)] : [one],
  );
  const worthy = passwords.filter((one) => one.length >= SHORTEST && !isOrdinary(one));
  return [...worthy, ...worthy.map(unescaped), ...headers].filter((one) => one.length >= SHORTEST);
}

/** Of `user:password` in base64. */
function passwordOf(base64: string): string {
  const pair = Buffer.from(base64, "base64").toString("utf8");
  return pair.slice(pair.indexOf(":") + 1);
}

const IN_ADDRESS = /[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{0,256}:([^\s@/]{1,1024})@/gi;
const IN_PAIRS = /;\s{0,8}(?:password|pwd|accountkey|sharedaccesskey)\s{0,8}=\s{0,8}([^;\s"']{1,1024})/gi;
const IN_HEADER = /authorization\s{0,8}:\s{0,8}([a-z][\w-]{0,20})\s{1,8}([\w.~+/-]{8,4096}={0,2})/gi;

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isSecret(name: string, value: string): boolean {
  if (isPlace(value) || NOT_SECRET.test(name)) return false;
  if (CERTAIN.test(name)) return !isOrdinary(value);
  if (LIKELY.test(name)) return !PLAIN.test(value);
  return (
    SESSION.test(name) &&
    value.length >= 16 &&
    /\d/.test(value) &&
    /[a-z]/i.test(value) &&
    !/[\s/:]/.test(value)
  );
}

/** Names that end in what is always a secret: its value counts also if it has only letters or only digits. */
const CERTAIN =
  /(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|PRIV(?:ATE)?_?KEY|ACCESS_?KEY|SECRET_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|(?:^|_)(?:SK|JWT|PAT|PASS|PWD|PIN|CREDENTIALS?))(?:_?\d{1,3})?$/i;
/** Names with such a word in them. They may also say something about a secret: how it is made, how long it holds. */
const LIKELY =
  /(?:^|_)(?:API_?)?(?:KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PAT|CREDENTIALS?|AUTH|COOKIES?|DSN|JWT|BEARER|WEBHOOK)(?:_|$)|CONN(?:ECTION)?_?STR(?:ING)?$/i;
const SESSION = /(?:^|_)SESS(?:ION)?(?:_?ID)?$|COOKIE$/i;
const NOT_SECRET =
  /^(?:(?:OLD)?PWD|XDG_.*|DESKTOP_SESSION|GDMSESSION|TERM_SESSION_ID|SSH_AUTH_SOCK|GPG_TTY)$/i;

const PLAIN = /^(?:true|false|[a-z]+|[\d.]+)$/;
/** What stands in such variables when there is no secret, and what everybody has for a password on their own machine. */
const WORDS =
  /^(?:true|false|none|null|undefined|disabled?|enabled?|required|optional|default|example|placeholder|redacted|changeme|password|passphrase|localhost|anonymous|development|production|postgres(?:ql)?|minioadmin|rabbitmq|unset|not[-_ ]?set|inherit(?:ed)?|automatic(?:ally)?|interactive|(?:your|my|the|a|some)[-_ ]?(?:api|secret|access|auth)?[-_ ]?(?:key|token|password|secret)(?:[-_ ]?here)?)$/i;
/** A word of letters only is taken for a secret from here on; a number, from there. */
const LETTERS = 12;
const DIGITS = 10;

function isOrdinary(value: string): boolean {
  if (WORDS.test(value)) return true;
  if (/^[\d.]+$/.test(value)) return value.length < DIGITS || isSeries(value);
  return /^[a-z]+$/.test(value) && (value.length < LETTERS || new Set(value).size < 5);
}

/** 1234567890, 0000000000 and their like. */
function isSeries(digits: string): boolean {
  if (new Set(digits).size < 4) return true;
  return "01234567890123456789".includes(digits) || "98765432109876543210".includes(digits);
}

function isPlace(value: string): boolean {
  return /^(?:\.{0,2}\/|~\/|[A-Za-z]:\\)/.test(value) && !/\s/.test(value);
}
