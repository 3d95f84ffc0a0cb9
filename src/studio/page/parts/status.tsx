/** What a screen shows in place of its content: that it is loading, that there is nothing, or why it cannot. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Fetched, RefusedRequest } from "../ask.ts";
import { PageLink } from "../go.tsx";
import { ALL_RUNS } from "../route.ts";
import { CopyCommand } from "./copy.tsx";
import { Foreign } from "./foreign.tsx";
import type { InParts } from "../../wire-agents.ts";
import { count } from "../../../flow/text/figures.ts";

/** Grey bars, and only when it takes a moment. */
export function Loading({ what = "Loading" }: { readonly what?: string }): JSX.Element {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="bars" role="status" aria-busy="true">
      <span class="hidden">{what}</span>
      {isSlow && [1, 2, 3, 4].map((bar) => <i key={bar} />)}
    </div>
  );
}

/** One sentence, and the command that changes it. */
export function Blank({
  title,
  command,
  children,
}: {
  readonly title: string;
  readonly command?: readonly string[];
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="blank">
      <h2>{title}</h2>
      {children}
      {command !== undefined && <CopyCommand words={command} />}
    </div>
  );
}

export function Failed({
  error,
  again,
}: {
  readonly error: RefusedRequest;
  readonly again?: () => void;
}): JSX.Element {
  const isGone = error.status === 404;
  return (
    <div class="note bad" role="alert">
      <p>
        <strong class="mono">{error.code}</strong> <Foreign text={error.message} most={2000} />
      </p>
      <div class="actions">
        {again !== undefined && (
          <button type="button" class="btn small" onClick={again}>
            Try again
          </button>
        )}
        {isGone && <PageLink to={ALL_RUNS}>All runs</PageLink>}
      </div>
    </div>
  );
}

/** How far a document is that comes in parts; nothing once it is whole. */
export function SoFar({
  document: { isAll, recorded },
  done,
}: {
  readonly document: InParts;
  readonly done: number;
}): JSX.Element | null {
  return isAll ? null : (
    <p class="note">
      {count(done, "run")} so far, the newest first; {recorded} are recorded. The rest follows.
    </p>
  );
}

/** The content once it is there; until then, or where it cannot be had, what holds instead. */
export function Await<T>({
  asked,
  what,
  children,
}: {
  readonly asked: Fetched<T>;
  readonly what?: string;
  readonly children: (value: T) => ComponentChildren;
}): JSX.Element {
  if (asked.value === null && asked.error === null)
    return <Loading {...(what === undefined ? {} : { what })} />;
  return (
    <>
      {asked.error !== null && <Failed error={asked.error} again={asked.again} />}
      {asked.value !== null && children(asked.value)}
    </>
  );
}
