/** What a run may execute, to be read and ticked before anything of it runs. */
import type { JSX } from "preact";
import { visibleInLine } from "../../../flow/text/visible.ts";
import type { Refusal } from "../../wire.ts";

type TrustListProps = {
  readonly trust: NonNullable<Refusal["trust"]>;
  readonly isTicked: boolean;
  readonly onTick: (on: boolean) => void;
};

export function TrustList({ trust, isTicked, onTick }: TrustListProps): JSX.Element {
  const added = new Set(trust.change?.added ?? []);
  return (
    <div class="note warn stack">
      <p>
        <strong>
          {trust.change === null
            ? "This agent was never trusted here."
            : "This agent changed since it was trusted."}
        </strong>{" "}
        It can run the following on your machine:
      </p>
      <ul class="trusted" tabIndex={0} aria-label="What is to be trusted">
        {trust.commands.map((line, at) => (
          <li key={at}>
            {added.has(line) && <span class="chip warn">new</span>}{" "}
            <bdi class="mono">{visibleInLine(line.toWellFormed())}</bdi>
          </li>
        ))}
        {trust.change?.removed.map((line, at) => (
          <li key={`removed ${at}`} class="soft">
            <span class="chip">removed</span> <bdi class="mono">{visibleInLine(line.toWellFormed())}</bdi>
          </li>
        ))}
      </ul>
      <label class="row nowrap-first">
        <input type="checkbox" checked={isTicked} onChange={(event) => onTick(event.currentTarget.checked)} />
        <span>
          I have read this and trust it: <code class="digest">{trust.digest}</code>
        </span>
      </label>
    </div>
  );
}
