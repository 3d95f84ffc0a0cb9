/**
 * The one part that shows foreign text: whatever a model, a tool, a file, a flow or a person wrote. It shows text and
 * nothing else, spells out what cannot be seen, and keeps the direction of its writing to itself.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { shown, shownInLine } from "../../../flow/text/harmless.ts";
import { visible } from "../../../flow/text/visible.ts";

/** On one line, cut after `most` characters; the whole text is in the tooltip where it was cut. */
export function Foreign({
  text,
  most = 200,
  mono = false,
}: {
  readonly text: string;
  readonly most?: number;
  readonly mono?: boolean;
}): JSX.Element {
  const line = shownInLine(text.toWellFormed(), most);
  const isCut = line.endsWith("…") && !text.endsWith("…");
  return (
    <bdi
      class={mono ? "mono" : undefined}
      {...(isCut ? { title: shownInLine(text.toWellFormed(), 2000) } : {})}
    >
      {line}
    </bdi>
  );
}

type BlockProps = {
  readonly text: string;
  /** A person decides on this text: also odd spaces, disguised letters and long gaps are spelled out. */
  readonly careful?: boolean;
  /** Lines that are shown at first. */
  readonly fold?: number;
  readonly label?: string;
};

/** Several lines, folded where they are many, with a way to see all of them. */
export function ForeignBlock({ text, careful = false, fold = 40, label }: BlockProps): JSX.Element {
  const [parts, setParts] = useState(1);
  const safe = careful ? visible(text.toWellFormed()) : shown(text.toWellFormed());
  const { head, left } = folded(safe, fold * (parts === 1 ? 1 : parts * 25));
  return (
    <div class="stack tight">
      <pre
        class="text"
        tabIndex={0}
        {...(label === undefined ? {} : { "aria-label": label, role: "group" as const })}
      >
        <bdi>{head}</bdi>
      </pre>
      {left > 0 && (
        <div>
          <button type="button" class="btn small" onClick={() => setParts(parts + 1)}>
            Show more ({left.toLocaleString("en")} characters left)
          </button>
        </div>
      )}
    </div>
  );
}

const LONGEST_LINE = 200;

/** The first lines of a text, a very long line counting as several. */
function folded(text: string, lines: number): { readonly head: string; readonly left: number } {
  const most = lines * LONGEST_LINE;
  let end = -1;
  for (let count = 0; count < lines; count += 1) {
    end = text.indexOf("\n", end + 1);
    if (end === -1 || end > most) break;
  }
  const cut = end === -1 ? Math.min(text.length, most) : Math.min(end, most);
  return { head: text.slice(0, cut), left: text.length - cut };
}
