/** What was and what would be, line by line. A person decides on it: nothing in it is hidden. */
import type { JSX } from "preact";
import { visible } from "../../../flow/text/visible.ts";
import { foldedDiff, lineDiff, type DiffLine } from "./line-diff.ts";

const MARK = { same: " ", removed: "−", added: "+" } as const;
const SPOKEN = { same: "", removed: "removed: ", added: "added: " } as const;

/** Lines that are shown at once; the rest is reached by scrolling in the part itself. */
export function Diff({
  before,
  after,
  label,
}: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}): JSX.Element {
  const parts = foldedDiff(lineDiff(visible(before.toWellFormed()), visible(after.toWellFormed())));
  return (
    <div class="diff" role="group" aria-label={label} tabIndex={0}>
      {parts.map((part, at) =>
        part.kind === "folded" ? (
          <div key={at} class="folded">
            {part.count} unchanged lines
          </div>
        ) : (
          part.lines.map((line, place) => <Line key={`${at}.${place}`} {...line} />)
        ),
      )}
      {parts.length === 0 && <div class="folded">Both are empty.</div>}
    </div>
  );
}

function Line({ kind, text }: DiffLine): JSX.Element {
  return (
    <div class={kind}>
      <span class="mark" aria-hidden="true">
        {MARK[kind]}
      </span>
      <span class="hidden">{SPOKEN[kind]}</span>
      <bdi>{text}</bdi>
    </div>
  );
}
