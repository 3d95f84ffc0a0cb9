/** A part of the chain behind a decision: it folds, and its colour says how it went. */
import type { ComponentChildren, JSX } from "preact";
import { Foreign } from "./foreign.tsx";

type PartProps = {
  readonly title: string;
  readonly about?: string;
  readonly tone?: "good" | "bad" | "warn" | "live";
  readonly isOpen?: boolean;
  readonly children: ComponentChildren;
};

/** A part of the chain that folds. */
export function ChainPart({ title, about = "", tone, isOpen = true, children }: PartProps): JSX.Element {
  return (
    <details class={`chain-part${tone === undefined ? "" : ` ${tone}`}`} open={isOpen}>
      <summary>
        <h3>{title}</h3>
        {about !== "" && (
          <span class="soft small">
            <Foreign text={about} most={160} />
          </span>
        )}
      </summary>
      <div class="stack">{children}</div>
    </details>
  );
}

export function FactRow({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
