/** A command to copy: the line that does the same in a terminal. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { shown } from "../../../flow/text/harmless.ts";
import { offerCommand } from "../keys.ts";
import { useCommand } from "../project.ts";

/** @param isMain `y` copies it: one on each screen */
export function CopyCommand({
  words,
  isMain = false,
}: {
  readonly words: readonly string[];
  readonly isMain?: boolean;
}): JSX.Element | null {
  const line = useCommand(words);
  useEffect(() => (isMain && line !== null ? offerCommand(line) : undefined), [isMain, line]);
  return line === null ? null : <CopyLine line={line} />;
}

/** A line that the server wrote: empty where a value of it cannot be seen. */
export function CopyLine({
  line,
  isWhole = false,
}: {
  readonly line: string;
  /** Broken over several lines, so that all of it is seen at once. */
  readonly isWhole?: boolean;
}): JSX.Element {
  if (line === "")
    return (
      <p class="soft small">
        The command is not shown: a value in it has characters that cannot be seen, and should not be pasted.
      </p>
    );
  const seen = shown(line.toWellFormed());
  return (
    <div class={isWhole ? "command whole" : "command"}>
      <code tabIndex={0} role="group" aria-label="The same as a command">
        <bdi>{seen}</bdi>
      </code>
      {seen === line && <CopyButton text={line} label="Copy the command" />}
    </div>
  );
}

export function CopyButton({
  text,
  children = "Copy",
  label = children,
}: {
  readonly text: string | (() => string);
  readonly label?: string;
  readonly children?: string;
}): JSX.Element {
  const [state, setState] = useState<"idle" | "copied" | "refused">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 1500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => {
    navigator.clipboard.writeText(typeof text === "string" ? text : text()).then(
      () => setState("copied"),
      () => setState("refused"),
    );
  };
  return (
    <button type="button" class="btn small" aria-label={label} onClick={copy}>
      {state === "copied" ? "Copied" : state === "refused" ? "Not allowed" : children}
    </button>
  );
}
