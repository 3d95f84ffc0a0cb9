/** What has the shape of a key: where such things stand in a text. */
import { REDACTED, redactedAs } from "../../flow/text/redacted.ts";

/** A part of a text that must not be seen, and what stands in its place. */
export type SecretSpan = { readonly from: number; readonly to: number; readonly mark: string };

export function shapesIn(text: string): readonly SecretSpan[] {
  const spans: SecretSpan[] = [...blocksIn(text)];
  for (const found of text.matchAll(CARRIED)) {
    const kept = found.slice(1).find((part) => part !== undefined) ?? "";
    spans.push({ from: found.index + kept.length, to: found.index + found[0].length, mark: REDACTED });
  }
  for (const found of text.matchAll(TOKENS)) {
    const groups = found.groups ?? {};
    const name = Object.keys(groups).find((key) => groups[key] !== undefined) ?? "";
    spans.push({ from: found.index, to: found.index + found[0].length, mark: redactedAs(name) });
  }
  return spans;
}

/** Whether the text may hold one. */
export function hintsAtShape(text: string): boolean {
  return HINT.test(text);
}

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
  // The first part ends where another token can begin, or many beginnings in a row would each be read to the end.
  jwt: "eyJ(?:(?![_-]eyJ)[\\w-]){0,4096}\\.eyJ[\\w-]{10,4096}\\.[\\w-]{10,4096}",
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

/** The word in any mix of cases. Not the flag `i`: other parts tell the cases apart. */
function anyCase(word: string): string {
  return word.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
}

const SCHEMES = "basic|bearer|token|api-?key|key|negotiate|ntlm|digest|hawk|dpop|oauth|splunk|bot";
const HEADER = `["']?\\s{0,4}[:=]\\s{0,4}["']?`;

/** Where only a part is secret: what stands before it, the first group, stays. */
const CARRIED = new RegExp(
  [
    `(\\b${anyCase("bearer")}\\s{1,4})(?=[\\w.~+/-]{0,200}\\d)[\\w.~+/-]{16,4096}={0,2}`,
    `(\\b${anyCase("authorization")}${HEADER}(?:${anyCase(SCHEMES)})\\s{1,4})(?=[\\w.~+/-]{0,200}(?:\\d|[a-z][A-Z]))[\\w.~+/-]{8,4096}={0,2}(?![\\w(])`,
    `(\\b${anyCase("authorization")}${HEADER})(?=[\\w.~+/-]{0,200}\\d)(?=[\\w.~+/-]{0,200}[A-Z])(?=[\\w.~+/-]{0,200}[a-z])[\\w.~+/-]{24,4096}={0,2}(?![\\w(])`,
    `(\\b(?:${anyCase("x")}-)?(?:${anyCase("api|auth|access|private|gitlab|vault|security")})-(?:${anyCase("key|token")})["']?\\s{0,4}:\\s{0,4}["']?)(?=[\\w.~+/-]{0,200}\\d)[\\w.~+/-]{16,4096}={0,2}(?![\\w(])`,
    `((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\\/\\/[^\\s:@/"'\`<>]{0,64}:)(?![$<{*%])[^\\s@/"'\`<>]{3,255}(?=@[\\w[.-])`,
    `((?:Account|SharedAccess)Key=)[\\w+/]{40,100}={0,2}`,
    `((?:${anyCase("server|data source|host|addr|address")})=[^;\\n"']{1,200};[^\\n"']{0,300}?(?:${anyCase("password|pwd")})=)(?![$<{*%])[^;\\s"']{3,255}`,
    `((?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY)["']?\\s{0,4}[:=]\\s{0,4}["']?)[\\w+/]{40}(?![\\w+/])`,
  ].join("|"),
  "g",
);

/** Not in the middle of a word; the end of an escape is none. */
const TOKENS = new RegExp(
  `(?<=^|[^A-Za-z0-9]|\\\\[bfnrt]|%[0-9A-Fa-f]{2})(?:${Object.entries(SHAPES)
    .map(([name, shape]) => `(?<${name}>${shape})`)
    .join("|")})`,
  "g",
);

/** Something that every one of the shapes above holds, found fast. Without it there is nothing to look for. */
const HINT =
  /gh[pousr]_|github_pat_|gl[a-z]{2,5}-|A[KSBC][ICA]A|xox[abeoprs]-|xapp-|sk-|AIza|ya29\.|GOCSPX-|npm_|pypi-|eyJ|[sr]k_|whsec_|SG\.|SK[0-9a-f]|:AA|hf_|_v1_|shp[a-z]{2}_|dckr_|hv[sbr]\.|dapi|lin_api|ATATT|gsk_|AGE-|PRIVATE KEY|[Bb][Ee][Aa][Rr][Ee][Rr]|[Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz]|-(?:[Kk][Ee][Yy]|[Tt][Oo][Kk][Ee][Nn])["']?\s{0,4}:|:\/\/[^\s@]{1,400}@|Key=|[Pp](?:assword|wd|ASSWORD|WD)=|(?:secret|SECRET)_/;

// Keys in the form of a block of lines: cut off, numbered by a tool or with their line ends escaped, they still are.

const BEGIN = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;
const END = /-----END [A-Z0-9 ]{0,60}PRIVATE KEY(?: BLOCK)?-----/;
const LINE = /(?:[^\n\\]|\\(?![nr]))*(?:\n|(?:\\r)?\\n|\\r|$)/y;
/** What a block is made of stands at the end of a line, whatever a tool put before it. */
const BODY = /(?:^|[^\w+/=])[A-Za-z0-9+/]{16,}={0,2}\s*(?:\\[nr])*$/;
const PREAMBLE = /^[^"'`;(){}]{0,120}$/;
const MOST_LINES = 400;

/** Where a block begins whose body may not have come yet. */
export function openBlockIn(text: string): number | null {
  const begins = [...text.matchAll(BEGIN)].map(({ index }) => index);
  return begins.find((index) => text.length - index < LONGEST_PREAMBLE) ?? null;
}

/** How much may stand between the first line of a block and what it is made of. */
const LONGEST_PREAMBLE = 1024;

function blocksIn(text: string): readonly SecretSpan[] {
  const spans: SecretSpan[] = [];
  let from = 0;
  for (const { index, 0: begin } of text.matchAll(BEGIN)) {
    const end = index < from ? null : endOfBlock(text, index + begin.length);
    if (end === null) continue;
    spans.push({ from: index, to: end, mark: redactedAs("private-key") });
    from = end;
  }
  return spans;
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
