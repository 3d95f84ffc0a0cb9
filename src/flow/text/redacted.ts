/** The marks that stand where a secret was taken out of a text. */

export const REDACTED = "[redacted]";

/** `name`: what kind of secret stood there. */
export function redactedAs(name: string): string {
  return `[redacted:${name}]`;
}

/** Whether a secret was taken out: what is left must not be used in its place. */
export function holdsRedacted(text: string): boolean {
  return /\[redacted(?::[\w-]+)?\]/.test(text);
}

/** Said to somebody who gives a text with such a mark. */
export const HIDDEN_VALUE = `A secret was hidden here (${REDACTED}). Type the value itself.`;
