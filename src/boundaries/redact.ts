/**
 * Takes secrets out of text before it is recorded, shown or sent on: first the values we know, in any of the forms they
 * travel in, then whatever has the shape of a key. Most texts hold neither, and those cost one look.
 */

export type Redactor = {
  readonly text: (text: string) => string;
  /** The same for every string and key in a value. What has nothing to hide is given back as it is. */
  readonly value: <T>(value: T) => T;
  /** From now on this value must not appear either. */
  readonly learn: (secret: string) => void;
};

/** `known`: values that must not appear, whatever they look like. Asked for when the first text is looked at. */
export function createRedactor(known: () => readonly string[]): Redactor {
  let needles: RegExp | null | undefined;
  const learned: string[] = [];
  const ofKnown = () => (needles === undefined ? (needles = needlesFor([...known(), ...learned])) : needles);

  const text = (whole: string): string => {
    if (whole.length < SHORTEST) return whole;
    const regex = ofKnown();
    const rest = regex === null ? whole : whole.replace(regex, "[redacted]");
    return HINT.test(rest) ? withoutShapes(rest) : rest;
  };

  const value = (whole: unknown, depth: number): unknown => {
    if (typeof whole === "string") return text(whole);
    if (typeof whole !== "object" || whole === null || depth > DEEPEST) return whole;
    return Array.isArray(whole) ? list(whole, depth) : object(whole as Members, depth);
  };

  const list = (whole: readonly unknown[], depth: number): readonly unknown[] => {
    let copy: unknown[] | null = null;
    for (let place = 0; place < whole.length; place++) {
      const tidy = value(whole[place], depth + 1);
      if (tidy !== whole[place]) (copy ??= [...whole])[place] = tidy;
    }
    return copy ?? whole;
  };

  const object = (whole: Members, depth: number): Members => {
    let isClean = true;
    for (const key in whole) {
      if (value(whole[key], depth + 1) !== whole[key]) isClean = false;
      else if (key.length >= SHORTEST_KEY && text(key) !== key) isClean = false;
    }
    if (isClean) return whole;
    return Object.fromEntries(
      Object.entries(whole).map(([key, member]) => [text(key), value(member, depth + 1)]),
    );
  };

  const learn = (secret: string) => {
    learned.push(secret);
    needles = undefined;
  };

  return { text, value: (whole) => value(whole, 0) as typeof whole, learn };
}

type Members = { readonly [key: string]: unknown };

/** The values of variables that are called like secrets, unless they merely say where something is. */
export function secretsIn(env: { readonly [name: string]: string | undefined }): readonly string[] {
  return Object.keys(env).flatMap((name) => {
    if (!SECRET_NAME.test(name) || name === "PWD" || name === "OLDPWD") return [];
    const value = env[name] ?? "";
    return value.length < SHORTEST || isPlace(value) || PLAIN.test(value) ? [] : [value];
  });
}

/** Shorter values would be found in ordinary words. */
const SHORTEST = 8;
const SHORTEST_KEY = 16;
/** Whatever is nested deeper is refused later on. */
const DEEPEST = 80;

const SECRET_NAME =
  /(?:^|_)(?:API_?)?(?:KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PAT|CREDENTIALS?|AUTH|COOKIE|DSN)(?:_|$)|(?:TOKEN|SECRET|PASSWORD|APIKEY)$/i;
const PLAIN = /^(?:true|false|[a-z]+|[\d.]+)$/;

function isPlace(value: string): boolean {
  return /^(?:\.{0,2}\/|~\/|[A-Za-z]:\\)/.test(value) && !/\s/.test(value);
}

// Known values.

function needlesFor(known: readonly string[]): RegExp | null {
  const forms = known.filter((value) => value.length >= SHORTEST).flatMap(formsOf);
  // The longest first: one form may be the beginning of another.
  const needles = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  return needles.length === 0 ? null : new RegExp(needles.map((one) => literally(one)).join("|"), "g");
}

function literally(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}-]/g, "\\$&");
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const url = encodeURIComponent(value);
  return [
    value,
    value.trim(),
    url,
    url.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()),
    JSON.stringify(value).slice(1, -1),
    bytes.toString("hex"),
    ...inBase64(bytes),
  ].filter((form) => form.length >= SHORTEST);
}

/** In the middle of something else, a value can begin at any of three places; the characters it shares are left out. */
function inBase64(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    const from = [0, 2, 3][before]!;
    const to = Math.floor((whole.length * 8) / 6);
    const plain = whole.toString("base64").slice(from, to);
    return [plain, plain.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

// Shapes.

/** What a key begins with. Bounded repeats, so that no text can make matching slow. */
const SHAPES: { readonly [name: string]: string } = {
  github: "gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
  gitlab: "gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|ffct)-[\\w-]{20,255}",
  aws: "(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])",
  slack: "xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-\\d-[A-Za-z0-9-]{10,255}",
  anthropic: "sk-ant-[\\w-]{20,255}",
  openai: "sk-(?=[\\w-]{0,200}\\d)(?=[\\w-]{0,200}[A-Z])[\\w-]{20,255}",
  google: "AIza[\\w-]{35}|ya29\\.[\\w-]{20,512}|GOCSPX-[\\w-]{28}",
  npm: "npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
  pypi: "pypi-AgE[\\w-]{50,512}",
  jwt: "eyJ[\\w-]{10,4096}\\.eyJ[\\w-]{10,4096}\\.[\\w-]{10,4096}",
  stripe: "(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9+/=]{24,255}",
  sendgrid: "SG\\.[\\w-]{16,32}\\.[\\w-]{30,64}",
  twilio: "SK[0-9a-f]{32}(?![0-9a-f])",
  telegram: "\\d{8,10}:AA[\\w-]{33}(?![\\w-])",
  huggingface: "hf_[A-Za-z0-9]{30,64}",
  digitalocean: "do[opr]_v1_[0-9a-f]{64}",
  shopify: "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
  docker: "dckr_pat_[\\w-]{20,64}",
  vault: "hv[sbr]\\.[\\w-]{24,255}",
  databricks: "dapi[0-9a-f]{32}(?![0-9a-f])",
  linear: "lin_api_[A-Za-z0-9]{32,64}",
  atlassian: "ATATT3[\\w=-]{50,512}",
  groq: "gsk_[A-Za-z0-9]{40,64}",
  age: "AGE-SECRET-KEY-1[0-9A-Z]{58}",
};

/** Where only a part is secret: what stands before it stays. */
const CARRIED =
  /((?:\b[Bb]earer|\b[Aa]uthorization["']?\s{0,4}[:=]\s{0,4}["']?(?:[Bb]asic|[Tt]oken))\s{1,4})(?=[\w.~+/-]{0,200}\d)[\w.~+/-]{16,4096}={0,2}|((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/"'`<>]{0,64}:)(?![$<{*%])[^\s@/"'`<>]{3,255}(?=@[\w[.-])|((?:Account|SharedAccess)Key=)[\w+/]{40,100}={0,2}|((?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY)["']?\s{0,4}[:=]\s{0,4}["']?)[\w+/]{40}(?![\w+/])/g;

/** Not in the middle of a word; the end of an escape is none. */
const TOKENS = new RegExp(
  `(?<=^|[^A-Za-z0-9]|\\\\[bfnrt]|%[0-9A-Fa-f]{2})(?:${Object.entries(SHAPES)
    .map(([name, shape]) => `(?<${name}>${shape})`)
    .join("|")})`,
  "g",
);

/** Something that every one of the shapes above holds, found fast. Without it there is nothing to look for. */
const HINT =
  /gh[pousr]_|github_pat_|gl[a-z]{2,5}-|A[KSBC][ICA]A|xox[abeoprs]-|xapp-|sk-|AIza|ya29\.|GOCSPX-|npm_|pypi-|eyJ|[sr]k_|whsec_|SG\.|SK[0-9a-f]|:AA|hf_|_v1_|shp[a-z]{2}_|dckr_|hv[sbr]\.|dapi|lin_api|ATATT|gsk_|AGE-|PRIVATE KEY|[Bb]earer|[Aa]uthorization|:\/\/[^\s@]{1,400}@|Key=|(?:secret|SECRET)_/;

function withoutShapes(text: string): string {
  return withoutBlocks(text)
    .replace(
      CARRIED,
      (_, ...kept) => `${kept.slice(0, 4).find((part) => part !== undefined) as string}[redacted]`,
    )
    .replace(TOKENS, (...found) => {
      const groups = found.at(-1) as { readonly [name: string]: string | undefined };
      return `[redacted:${Object.keys(groups).find((name) => groups[name] !== undefined)}]`;
    });
}

// Keys in the form of a block of lines: cut off, numbered by a tool or with their line ends escaped, they still are.

const BEGIN = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;
const END = /-----END [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----/;
const LINE = /(?:[^\n\\]|\\(?![nr]))*(?:\n|(?:\\r)?\\n|\\r|$)/y;
/** What a block is made of stands at the end of a line, whatever a tool put before it. */
const BODY = /(?:^|[^\w+/=])[A-Za-z0-9+/]{16,}={0,2}\s*(?:\\[nr])*$/;
const PREAMBLE = /^[^"'`;(){}]{0,120}$/;
const MOST_LINES = 400;

function withoutBlocks(text: string): string {
  let tidy = "";
  let from = 0;
  for (const { index, 0: begin } of text.matchAll(BEGIN)) {
    const end = index < from ? null : endOfBlock(text, index + begin.length);
    if (end === null) continue;
    tidy += `${text.slice(from, index)}[redacted:private-key]`;
    from = end;
  }
  return tidy + text.slice(from);
}

/** null: no key follows, only its first line was quoted. */
function endOfBlock(text: string, start: number): number | null {
  let end: number | null = null;
  let at = start;
  for (let count = 0; count < MOST_LINES && at < text.length; count++) {
    LINE.lastIndex = at;
    const [line = ""] = LINE.exec(text) ?? [];
    const last = END.exec(line);
    const body = last === null ? line : line.slice(0, last.index);
    const isCutOff = end !== null && at + line.length === text.length && /[A-Za-z0-9+/]$/.test(line);
    const isBody = BODY.test(body) || isCutOff;
    if (last !== null) return isBody || end !== null ? at + last.index + last[0].length : null;
    if (isBody) end = at + line.replace(/\s*(?:\\[nr])*$/, "").length;
    else if (!PREAMBLE.test(line) || line.includes("-----BEGIN")) break;
    at += line.length || 1;
  }
  return end;
}
