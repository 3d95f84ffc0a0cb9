/** Points in time and stretches of it. */
import type { JSX } from "preact";
import { age } from "../../../flow/text/figures.ts";
import { useSeconds } from "../listen.ts";

/** `3m ago`, with the time itself in the tooltip. */
export function Ago({ at }: { readonly at: number | string }): JSX.Element {
  const time = typeof at === "number" ? at : Date.parse(at);
  const now = useSeconds();
  return (
    <time dateTime={isoOf(time)} title={new Date(time).toLocaleString()}>
      {age(now - time)} ago
    </time>
  );
}

function isoOf(time: number): string {
  return Number.isFinite(time) ? new Date(time).toISOString() : "";
}
