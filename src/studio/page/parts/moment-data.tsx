/** What was handed on, and what the run knew, at the moment that is looked at. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { MomentDocument } from "../../wire.ts";
import { useAsk } from "../ask.ts";
import { JsonTree } from "./json.tsx";
import { Foreign } from "./foreign.tsx";
import { Await } from "./status.tsx";

export function MomentData({ run, seq }: { readonly run: string; readonly seq: number }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const asked = useAsk<MomentDocument>(
    isOpen && seq > 0 ? `runs/${encodeURIComponent(run)}/at/${seq}` : null,
  );
  return (
    <details class="card fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="card-head">
        <h2>Data at entry {seq}</h2>
        <span class="soft small">what was handed on, and what the run knew</span>
      </summary>
      {isOpen && (
        <div class="card-body">
          <Await asked={asked}>
            {({ handoff, ctx, changed, log }) => (
              <>
                {log.map((line, at) => (
                  <p key={at} class="soft">
                    <Foreign text={line.message} most={400} />
                  </p>
                ))}
                <div class="columns">
                  <div class="stack tight">
                    <h3>Handed on</h3>
                    <JsonTree
                      value={handoff}
                      marked={changed
                        .filter((one) => one.startsWith("/handoff"))
                        .map((one) => one.slice("/handoff".length))}
                    />
                  </div>
                  <div class="stack tight">
                    <h3>Context</h3>
                    <JsonTree
                      value={ctx}
                      marked={changed
                        .filter((one) => one.startsWith("/ctx"))
                        .map((one) => one.slice("/ctx".length))}
                    />
                  </div>
                </div>
              </>
            )}
          </Await>
        </div>
      )}
    </details>
  );
}
