/** The state of a run as a coloured word: never a colour alone. */
import type { JSX } from "preact";
import type { RunLine } from "../../wire.ts";
import { Foreign } from "./foreign.tsx";

export type RunState = RunLine["state"];

const LOOKS: { readonly [state in RunState]: string } = {
  running: "live",
  queued: "calm",
  completed: "good",
  failed: "bad",
  waiting: "warn",
  paused: "calm",
  interrupted: "warn",
  damaged: "bad",
  poisoned: "bad",
};

export function StateChip({
  state,
  code = null,
}: {
  readonly state: RunState;
  readonly code?: string | null;
}): JSX.Element {
  return (
    <span class={`chip ${LOOKS[state]}`}>
      <span class={`dot ${LOOKS[state]}`} />
      {state}
      {code !== null && (
        <span class="mono">
          <Foreign text={code} most={40} />
        </span>
      )}
    </span>
  );
}
