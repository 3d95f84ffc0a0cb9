/** Keys of the page: each screen adds its own while it is shown, and all of them can be switched off. */
import { useEffect, useRef } from "preact/hooks";
import { chordOf } from "./chords.ts";
import { createStore } from "./store.ts";

export type KeyAction = { readonly about: string; readonly run: () => void };
export type KeyTable = { readonly [chord: string]: KeyAction };

const KEY = "lockstep-keys";
export const keysAreOn = createStore(localStorage.getItem(KEY) !== "off");

export function switchKeys(on: boolean): void {
  localStorage.setItem(KEY, on ? "on" : "off");
  keysAreOn.set(() => on);
}

/** The group of the frame: what a screen says about a key comes before it. */
export const EVERYWHERE = "Everywhere";

/** The newest is asked first. */
const tables: { readonly group: string; readonly get: () => KeyTable }[] = [];

export function useKeys(group: string, table: KeyTable): void {
  // The newest table counts at once: a key may be pressed before the page is painted again.
  const held = useRef(table);
  held.current = table;
  useEffect(() => {
    const own = { group, get: () => held.current };
    if (group === EVERYWHERE) tables.push(own);
    else tables.unshift(own);
    return () => void tables.splice(tables.indexOf(own), 1);
  }, [group]);
}

/** Moves the focus to the next or the previous of those that a selector names; to the first one where none has it. */
export function stepFocus(selector: string, by: number, within: ParentNode | null = document): void {
  const all = [...(within?.querySelectorAll<HTMLElement>(selector) ?? [])];
  const here = all.findIndex((one) => one.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, here === -1 ? 0 : here + by))]?.focus();
}

/** For the page that lists them. */
export function allKeys(): readonly { readonly group: string; readonly keys: KeyTable }[] {
  return tables.map(({ group, get }) => ({ group, keys: get() })).toReversed();
}

/** Says something to people who listen instead of looking: one polite region for the whole page. */
export const announced = createStore("");
export function announce(text: string): void {
  announced.set(() => text);
}

let offered: string | null = null;

/** The command that `y` copies. Returns how to take it back. */
export function offerCommand(line: string): () => void {
  offered = line;
  return () => {
    if (offered === line) offered = null;
  };
}

export function copyOffered(): void {
  if (offered === null) return;
  navigator.clipboard.writeText(offered).then(
    () => announce("Copied the command."),
    () => announce("The browser did not allow copying."),
  );
}

let begun = "";

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const found = chordOf(
      {
        key: event.key,
        ctrlKey: event.ctrlKey,
        metaKey: event.metaKey,
        altKey: event.altKey,
        inField: isField(event.target),
      },
      begun,
    );
    begun = "";
    if (found === null || (!keysAreOn.get() && !ALWAYS.has(found.chord))) return;
    if (!found.isWhole) {
      begun = found.chord;
      return;
    }
    // A button or a link that has the focus is worked with these.
    if ((found.chord === "Enter" || found.chord === "Space") && isControl(event.target)) return;
    const action = tables.map(({ get }) => get()[found.chord]).find((one) => one !== undefined);
    if (action === undefined) return;
    event.preventDefault();
    action.run();
  });
}

/** These work a dialog or a form, and are no shortcuts. */
const ALWAYS: ReadonlySet<string> = new Set(["Escape", "Ctrl-Enter"]);

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button", "range"].includes(target.type);
  return (
    target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a, button, summary, input, [role=button]") !== null;
}
