/** The marks that stand where a secret was taken out of a text. */

export const REDACTED = "[redacted]";

/** `name`: what kind of secret stood there. */
export function redactedAs(name: string): string {
  return `[redacted:${name}]`;
}

/** Whether a secret was taken out: what is left must not be used in its place. */
export function holdsRedacted(text: string): boolean {
  return marksIn(text) > 0;
}

function marksIn(text: string): number {
  return text.match(/\[redacted(?::[\w-]+)?\]/g)?.length ?? 0;
}

/** Whether `text`, in the place of `before`, has marks where secrets were. `shown`: what can be seen of `before`. */
export function losesSecret(before: string, shown: string, text: string): boolean {
  const own = marksIn(before);
  return marksIn(shown) > own && marksIn(text) > own;
}

/** Said to somebody who gives a text with such a mark. */
export const HIDDEN_VALUE = `A secret was hidden here (${REDACTED}). Type the value itself.`;
