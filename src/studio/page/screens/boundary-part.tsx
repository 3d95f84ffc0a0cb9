/** What the steps of an agent may really touch on this machine. Looking opens the sandbox once, so it waits for a click. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { BoundaryDocument } from "../../wire-agents.ts";
import { useAsk } from "../ask.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await } from "../parts/status.tsx";

export function BoundaryPart({
  agent,
  version,
}: {
  readonly agent: string;
  readonly version: number;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const asked = useAsk<BoundaryDocument>(
    isOpen ? `agents/${encodeURIComponent(agent)}/boundary` : null,
    version,
  );
  return (
    <section class="card">
      <div class="card-head">
        <h2 class="grow">Boundary</h2>
        <CopyCommand words={["explain", agent, "--boundary"]} />
      </div>
      <div class="card-body">
        {isOpen ? (
          <Await asked={asked} what="Looking at the boundary">
            {(document) => <BoundaryFacts document={document} />}
          </Await>
        ) : (
          <div class="row">
            <button type="button" class="btn" onClick={() => setOpen(true)}>
              Look at this machine
            </button>
            <span class="soft">
              Opens the sandbox once, to see what holds here. Nothing of the agent runs.
            </span>
          </div>
        )}
      </div>
    </section>
  );
}

function BoundaryFacts({ document }: { readonly document: BoundaryDocument }): JSX.Element {
  const { sandbox, steps, env } = document;
  return (
    <>
      <p class="row">
        <span class={`chip ${sandbox.confined ? "good" : "warn"}`}>
          {sandbox.confined ? "commands are sandboxed" : "commands are not sandboxed"}
        </span>
        <Foreign text={sandbox.why} most={300} />
      </p>
      {sandbox.warnings.map((text) => (
        <p key={text} class="note warn">
          <Foreign text={text} most={600} />
        </p>
      ))}
      {sandbox.confined && (
        <dl class="facts">
          <dt>Network</dt>
          <dd>
            <Foreign
              text={
                sandbox.hosts === null ? "none" : sandbox.hosts === "all" ? "all" : sandbox.hosts.join(", ")
              }
              most={400}
              mono
            />
          </dd>
          <dt>May write</dt>
          <dd>
            <Foreign text={sandbox.writable.join(", ") || "nothing"} most={800} mono />
          </dd>
          <dt>Read only</dt>
          <dd>
            <Foreign text={sandbox.readOnly.join(", ") || "nothing else"} most={800} mono />
          </dd>
          <dt>Hidden</dt>
          <dd>
            <Foreign text={sandbox.hidden.join(", ") || "nothing"} most={800} mono />
          </dd>
        </dl>
      )}
      <div class="scroll" tabIndex={0} role="group" aria-label="Boundary of each step">
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Mode</th>
              <th scope="col">Tools</th>
              <th scope="col">Asks about</th>
              <th scope="col">Commands</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((step) => (
              <tr key={step.step}>
                <th scope="row">
                  <Foreign text={step.step} most={60} mono />
                </th>
                <td>{step.mode}</td>
                <td>
                  <Foreign text={step.tools.join(", ") || "none"} most={300} mono />
                </td>
                <td>
                  <Foreign text={step.asks.join(", ") || "nothing"} most={200} mono />
                </td>
                <td>
                  <Foreign
                    text={step.commands === null ? "any" : step.commands.join(", ") || "none"}
                    most={400}
                    mono
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft small">
        Variables that commands see: <Foreign text={env.join(", ") || "none"} most={600} mono />
      </p>
    </>
  );
}
