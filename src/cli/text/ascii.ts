/** The signs that Lockstep draws, for terminals without Unicode: words of models and files stay as they are otherwise. */

const SIGNS: { readonly [sign: string]: string } = {
  "✓": "+",
  "✗": "x",
  "→": ">",
  "←": "<",
  "·": "-",
  "…": "...",
  "×": "x",
  "■": "#",
  "●": "*",
  "▶": ">",
  "◀": "<",
  "↑": "^",
  "↩": "<",
  "↻": "@",
  "⚠": "!",
  "━": "=",
  "∥": "|",
};

/** Lines and corners of drawings: one character for one, so that columns stay where they are. */
const LINES = /[─-╿]/g;
const HORIZONTAL = /[─╌╴╶]/;
const VERTICAL = /[│╎╵╷]/;

export function asciiOf(text: string): string {
  return text
    .replaceAll(/[✓✗→←·…×■●▶◀↑↩↻⚠━∥]/g, (sign) => SIGNS[sign]!)
    .replaceAll(LINES, (line) => (HORIZONTAL.test(line) ? "-" : VERTICAL.test(line) ? "|" : "+"));
}

/** The first of these that is set decides which characters a terminal has; where none is, it is taken to have them all. */
export function isAscii(env: { readonly [name: string]: string | undefined }): boolean {
  if (env.TERM === "dumb") return true;
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find((value) => value !== undefined && value !== "");
  return locale !== undefined && !/utf-?8/i.test(locale);
}
