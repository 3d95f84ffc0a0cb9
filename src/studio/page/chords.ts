/** Which keys mean what: single keys, and `g` followed by another one. */

/** A key as the browser gives it. */
export type Pressed = {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  /** The focus is in a field that takes what is typed. */
  readonly inField: boolean;
};

const LEADER = "g";

/** The chord that is complete now, or the part of one that has begun. null: the key is left to the browser. */
export function chordOf(
  { key, ctrlKey, metaKey, altKey, inField }: Pressed,
  begun: string,
): { readonly chord: string; readonly isWhole: boolean } | null {
  if (metaKey || altKey) return null;
  if (ctrlKey) return key === "Enter" ? { chord: "Ctrl-Enter", isWhole: true } : null;
  if (inField) return key === "Escape" ? { chord: "Escape", isWhole: true } : null;
  if (begun === LEADER) return { chord: `${LEADER} ${key}`, isWhole: true };
  if (key === LEADER) return { chord: LEADER, isWhole: false };
  return { chord: key === " " ? "Space" : key, isWhole: true };
}
