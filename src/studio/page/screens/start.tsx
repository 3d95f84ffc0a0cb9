/** Starts a run: a form made from the parameters of the agent, beside the line that will run. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { hasErrors } from "../../../flow/problem.ts";
import type { Refusal } from "../../wire.ts";
import type { ArgumentsDocument, StartedDocument } from "../../wire-acts.ts";
import type { AgentDocument } from "../../wire-agents.ts";
import { act, refusedOf, useAsk, type RefusedRequest } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { useFilesOf } from "../listen.ts";
import { CopyLine } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await, Blank, Failed } from "../parts/status.tsx";
import { TrustList } from "../parts/trust.tsx";
import { useMayAct } from "../project.ts";
import { runAt, type Route } from "../route.ts";
import { FindingCount } from "./findings.tsx";
import { FreeRows, LabelledField, ParameterField, RunChoices } from "./start-fields.tsx";
import {
  sentArgs,
  fieldErrors,
  firstTyped,
  freeRows,
  hiddenIn,
  NO_CHOICES,
  startRequest,
  type FreeRow,
  type StartChoices,
  type Typed,
} from "./start-model.ts";

type StartRoute = Extract<Route, { readonly at: "start" }>;

export function StartScreen({ route }: { readonly route: StartRoute }): JSX.Element {
  const { agent } = route;
  const asked = useAsk<AgentDocument>(`agents/${encodeURIComponent(agent)}`, useFilesOf(agent));
  const mayAct = useMayAct();
  return (
    <ScreenFrame
      crumbs={[
        { text: "Flows", to: { at: "flows" } },
        { text: agent, to: { at: "flow", agent, step: null } },
        { text: "Start" },
      ]}
    >
      <div class="head">
        <div class="titles">
          <h1>
            Start <Foreign text={agent} most={60} />
          </h1>
          <p class="soft">
            The studio starts the command in a process of its own. Closing the studio does not stop the run.
          </p>
        </div>
      </div>
      <Await asked={asked} what="Loading the agent">
        {(document) =>
          document.explained === null || hasErrors(document.problems) ? (
            <div class="card">
              <Blank title="This agent cannot run." command={["check", agent]}>
                <p>
                  Its files have errors.{" "}
                  <PageLink to={{ at: "flow", agent, step: null }}>Show the findings</PageLink>
                </p>
              </Blank>
            </div>
          ) : mayAct ? (
            <StartForm key={agent} document={document} />
          ) : (
            <div class="card">
              <Blank title="This studio is read only." command={["run", agent]} />
            </div>
          )
        }
      </Await>
    </ScreenFrame>
  );
}

const NONE: ReadonlySet<string> = new Set();

function StartForm({ document }: { readonly document: AgentDocument }): JSX.Element {
  const { agent, parameters, openArguments, takesInput, earlier, problems, costLine } = document;
  const [typed, setTyped] = useState<Typed>(() => firstTyped(parameters));
  const [hidden, setHidden] = useState<ReadonlySet<string>>(NONE);
  const [free, setFree] = useState<readonly FreeRow[]>([]);
  const [given, setGiven] = useState<StartChoices>(NO_CHOICES);
  const [ticked, setTicked] = useState<string | null>(null);
  const [judged, setJudged] = useState<ArgumentsDocument | null>(null);
  const [isTried, setTried] = useState(false);
  const [isStarting, setStarting] = useState(false);
  const [error, setError] = useState<RefusedRequest | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const args = sentArgs(parameters, typed, openArguments ? free : []);
  const trust = trustIn(error) ?? document.trust;
  const request = startRequest(
    agent,
    args,
    given,
    trust !== null && ticked === trust.digest ? trust.digest : null,
  );
  const { agent: _agent, trust: _trust, ...body } = request;
  const sent = JSON.stringify(body);

  useEffect(() => {
    let isCurrent = true;
    // While typing the server is asked once, a moment after the last key.
    const timer = setTimeout(() => {
      act<ArgumentsDocument>(`agents/${encodeURIComponent(agent)}/arguments`, body).then(
        (answer) => isCurrent && setJudged(answer),
        () => undefined,
      );
    }, 200);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [agent, sent]);

  const errors = fieldErrors(judged?.errors ?? []);
  const mayStart = !isStarting && (trust === null || ticked === trust.digest);
  const start = () => {
    setTried(true);
    if (!mayStart) return;
    if ((judged?.errors.length ?? 0) > 0) {
      queueMicrotask(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    setStarting(true);
    setError(null);
    act<StartedDocument>("runs", request).then(
      ({ run }) => go(runAt(run)),
      (reason: unknown) => {
        setStarting(false);
        setError(refusedOf(reason));
      },
    );
  };
  useKeys("Start", { "Ctrl-Enter": { about: "Start the run", run: start } });
  const change = (part: Partial<StartChoices>) => setGiven((now) => ({ ...now, ...part }));
  return (
    <div class="start">
      <form
        ref={form}
        class="stack"
        // Nothing starts by Enter in a field: what runs is a decision.
        onSubmit={(event) => event.preventDefault()}
      >
        <section class="card">
          <div class="card-head">
            <h2 class="grow">Arguments</h2>
            {earlier.length > 0 && (
              <select
                aria-label="Take over the arguments of an earlier run"
                value=""
                onChange={(event) => {
                  const found = earlier.find(({ run }) => run === event.currentTarget.value);
                  if (found === undefined) return;
                  setTyped(firstTyped(parameters, found.args));
                  setFree(freeRows(parameters, found.args));
                  setHidden(hiddenIn(found.args));
                }}
              >
                <option value="">Take over from an earlier run …</option>
                {earlier.map(({ run, args: before }) => (
                  <option key={run} value={run}>
                    {optionText(run, before)}
                  </option>
                ))}
              </select>
            )}
          </div>
          <div class="card-body">
            {parameters.length === 0 && !openArguments && <p class="soft">This agent takes no arguments.</p>}
            {parameters.map((parameter) => (
              <ParameterField
                key={parameter.name}
                parameter={parameter}
                text={typed[parameter.name] ?? ""}
                isHidden={hidden.has(parameter.name)}
                // What is required is not wrong before it was typed.
                errors={
                  isTried || (typed[parameter.name] ?? "") !== "" ? (errors.get(parameter.name) ?? []) : []
                }
                onChange={(text) => setTyped((now) => ({ ...now, [parameter.name]: text }))}
              />
            ))}
            {openArguments && <FreeRows rows={free} hidden={hidden} onChange={setFree} />}
            {isTried &&
              errors.get("")?.map((message) => (
                <p key={message} class="note bad">
                  <Foreign text={message} most={1000} />
                </p>
              ))}
            {takesInput && (
              <LabelledField name="Input text" hint="What a prompt reads as {input_text}.">
                <textarea
                  rows={3}
                  value={given.input}
                  onInput={(event) => change({ input: event.currentTarget.value })}
                />
              </LabelledField>
            )}
          </div>
        </section>
        <RunChoices given={given} script={document.script} change={change} />
      </form>
      <aside class="stack">
        <section class="card">
          <div class="card-head">
            <h2>What will run</h2>
          </div>
          <div class="card-body">
            {judged === null ? (
              <p class="soft">Working out the command …</p>
            ) : (
              <CopyLine line={judged.command} isWhole />
            )}
            {costLine !== null && (
              <p>
                <Foreign text={costLine} most={400} />
              </p>
            )}
            <FindingCount agent={agent} problems={problems} />
            {trust !== null && (
              <TrustList
                trust={trust}
                isTicked={ticked === trust.digest}
                onTick={(on) => setTicked(on ? trust.digest : null)}
              />
            )}
            {error !== null && trustIn(error) === null && <Failed error={error} />}
            <div class="actions">
              <button type="button" class="btn primary" disabled={!mayStart} onClick={start}>
                {isStarting ? "Starting …" : "Start the run"}
                <kbd aria-hidden="true">Ctrl-Enter</kbd>
              </button>
            </div>
            {trust !== null && ticked !== trust.digest && (
              <p class="soft small">Read the list above and tick it before the run can start.</p>
            )}
          </div>
        </section>
      </aside>
    </div>
  );
}

/** What has to be trusted, where a refusal says so: the files may have changed since they were listed. */
function trustIn(error: RefusedRequest | null): NonNullable<Refusal["trust"]> | null {
  return (error?.document as Refusal | null | undefined)?.trust ?? null;
}

function optionText(run: string, args: { readonly [name: string]: unknown }): string {
  const words = Object.entries(args).map(
    ([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return `${run.slice(0, 8)}  ${words.join(", ").slice(0, 60)}`.replaceAll(/\p{C}/gu, " ");
}
