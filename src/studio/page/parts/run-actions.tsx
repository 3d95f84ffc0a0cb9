/** What can be done with a run: only what its state allows, and only where the studio may act. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RunDocument, RunLine } from "../../wire.ts";
import { act, refusedOf, type RefusedRequest } from "../ask.ts";
import { authorized } from "../token.ts";
import { go } from "../go.tsx";
import { announce } from "../keys.ts";
import { useMayAct } from "../project.ts";
import { visitText } from "../route.ts";
import { actionsOf, type RunAction } from "../run-actions.ts";
import { Foreign } from "./foreign.tsx";

export function RunActions({
  document,
  row,
}: {
  readonly document: RunDocument;
  readonly row: RunLine;
}): JSX.Element {
  const mayAct = useMayAct();
  const [state, setState] = useState<{
    readonly busy: RunAction["act"] | null;
    readonly error: RefusedRequest | null;
    readonly sure: RunAction["act"] | null;
  }>({ busy: null, error: null, sure: null });
  const perform = (action: RunAction) => {
    if (action.asks !== undefined && state.sure !== action.act)
      return setState({ ...state, sure: action.act });
    setState({ busy: action.act, error: null, sure: null });
    act(`runs/${encodeURIComponent(row.run)}/${action.route}`, action.body).then(
      () => {
        announce(action.done);
        return setState({ busy: null, error: null, sure: null });
      },
      (error: unknown) => setState({ busy: null, error: refusedOf(error), sure: null }),
    );
  };
  const last = document.shown.path.at(-1) ?? document.shown.underWay[0];
  return (
    <div class="stack tight">
      <div class="actions">
        {mayAct &&
          actionsOf(row.state, document).map((action) => (
            <button
              key={action.act}
              type="button"
              class={`btn${action.isMain === true ? " primary" : ""}${action.asks !== undefined ? " danger" : ""}`}
              disabled={state.busy !== null}
              title={action.about}
              onClick={() => perform(action)}
            >
              {state.busy === action.act
                ? `${action.name} …`
                : state.sure === action.act
                  ? action.asks
                  : action.name}
            </button>
          ))}
        {mayAct && last !== undefined && (
          <button
            type="button"
            class="btn"
            title={`Another run that shares its past up to ${visitText(last)}`}
            onClick={() => go({ at: "fork", run: row.run, visit: { step: last.step, visit: last.visit } })}
          >
            Fork
          </button>
        )}
        {document.shown.forkedFrom !== null && (
          <button
            type="button"
            class="btn"
            onClick={() => go({ at: "compare", a: document.shown.forkedFrom!.run, b: row.run })}
          >
            Compare
          </button>
        )}
        <button type="button" class="btn" onClick={() => void download(row.run)}>
          Export
        </button>
      </div>
      {state.error !== null && (
        <p class="bad small" role="alert">
          <Foreign text={`${state.error.code}: ${state.error.message}`} most={600} />
        </p>
      )}
    </div>
  );
}

/** By fetch and a blob: a link would need the token in its address. */
async function download(run: string): Promise<void> {
  const answer = await fetch(`/api/runs/${encodeURIComponent(run)}/export`, {
    headers: authorized(),
    cache: "no-store",
  });
  if (!answer.ok) return announce("The run could not be exported.");
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = `${run.replaceAll(/[^\w.-]/g, "_")}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
