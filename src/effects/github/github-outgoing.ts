/**
 * Texts of a model on their way to GitHub, which obeys some of them: `Closes #99` in a pull request or a commit closes
 * that issue with the merge, `@name` calls people and bots, and bots take lines such as `/approve` for commands. Pure.
 *
 * Each is broken by a zero-width space right behind its sign (`#`, `@`) or before its slash. Without its digits behind it,
 * `#` is not a reference for GitHub, and so there is nothing to close, be it in Markdown, in a title or in a commit message.
 * Backticks would do in Markdown only, a backslash would not: references are looked for in the rendered text. Dependabot
 * and Renovate break what they quote in the same way.
 */

export type Own = {
  /** The issue that a text may close; null: none. */
  readonly issue: number | null;
  readonly owner: string;
  readonly repo: string;
  /** Whether people and bots may be called. */
  readonly mentions: boolean;
};

export function quietText(text: string, own: Own): string {
  // What is written as an entity is a plain character again when it is rendered.
  const plain = text.replaceAll(/&(?=#|num;|commat;|sol;)/gi, "&amp;");
  const closed = broken(plain, foreignClosings(plain, own));
  if (own.mentions) return closed;
  return closed.replaceAll(MENTION, `@${GAP}`).replaceAll(COMMAND, `$1${GAP}/`);
}

/** An issue that a text would close with a merge, and the place where its number begins. */
export type ClosingReference = { readonly said: string; readonly number: number };

/** Those of other issues than the run's own. */
export function foreignClosings(
  text: string,
  { issue, owner, repo }: Omit<Own, "mentions">,
): readonly ClosingReference[] {
  const found: ClosingReference[] = [];
  for (const { index, 0: keyword } of text.matchAll(KEYWORD)) {
    const reference = referenceAt(text, index + keyword.length);
    if (reference === null) continue;
    const { named, digits, whole, to } = reference;
    const isHere = named === null || named.toLowerCase() === `${owner}/${repo}`.toLowerCase();
    if (isHere && Number(digits) === issue) continue;
    found.push({ said: `${keyword} ${whole}`, number: to - digits.length });
  }
  return found;
}

const GAP = "\u200b";
const KEYWORD = /(?<![\p{L}\p{N}_])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)(?![\p{L}\p{N}_])/giu;
/** A mention does not begin within a word: that would be an address. */
const MENTION = /(?<![\w.+-])@(?=[A-Za-z0-9])/g;
const COMMAND = /^([ \t>]{0,8})\/(?=[A-Za-z][\w-]{0,40}(?:[ \t]|$))/gm;

/** What may stand between the word and the number without separating them: signs, marks of Markdown, tags, a few words. */
const BETWEEN =
  /<[^<>]{0,300}>|&\w{1,10};|[^\p{L}\p{N}#<&]|[<&]|(?:issues?|bugs?|tickets?|pull|request|pr|and|with)(?![\p{L}\p{N}_])/iuy;
const REFERENCE =
  /(?:https?:\/\/[^\s/]{1,255}\/([\w.-]{1,100}\/[\w.-]{1,100})\/(?:issues|pull)\/|([\w.-]{1,100}\/[\w.-]{1,100})?#|gh-)(\d{1,10})/iy;
const MOST_BETWEEN = 64;

function referenceAt(text: string, start: number) {
  let at = start;
  for (let count = 0; count <= MOST_BETWEEN; count += 1) {
    REFERENCE.lastIndex = at;
    const found = REFERENCE.exec(text);
    if (found !== null) {
      const [whole, inAddress, before, digits = ""] = found;
      return { named: inAddress ?? before ?? null, digits, whole, to: at + whole.length };
    }
    BETWEEN.lastIndex = at;
    const [skipped] = BETWEEN.exec(text) ?? [];
    if (skipped === undefined) return null;
    at += skipped.length;
  }
  return null;
}

function broken(text: string, closings: readonly ClosingReference[]): string {
  return closings
    .toReversed()
    .reduce((whole, { number }) => `${whole.slice(0, number)}${GAP}${whole.slice(number)}`, text);
}
