/** Forks a run at a visit: another answer, handoff, prompt or model, beside what stood there. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import type { MomentDocument, Refusal, WhyDocument } from "../../wire.ts";
import type { JudgedDocument, StartedDocument } from "../../wire-acts.ts";
import { act, refusedOf, useAsk, type RefusedRequest } from "../ask.ts";
import { ScreenFrame, visitCrumbs } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Diff } from "../parts/diff.tsx";
import { Foreign, ForeignBlock } from "../parts/foreign.tsx";
import { Await, Blank, Failed, Loading } from "../parts/status.tsx";
import { TrustList } from "../parts/trust.tsx";
import { useMayAct, useProject } from "../project.ts";
import { runAt, visitText, type Route } from "../route.ts";
import {
  editedWords,
  forkBefore,
  forkRequestOf,
  forkWords,
  NO_EDITS,
  type ForkBefore,
  type ForkEdits,
} from "./fork-model.ts";

type ForkRoute = Extract<Route, { readonly at: "fork" }>;

export function ForkScreen({ route }: { readonly route: ForkRoute }): JSX.Element {
  const { run, visit } = route;
  const mayAct = useMayAct();
  const why = useAsk<WhyDocument>(
    `runs/${encodeURIComponent(run)}/why/${encodeURIComponent(visitText(visit))}`,
  );
  return (
    <ScreenFrame crumbs={visitCrumbs(run, visit, "Fork")}>
      <div class="head">
        <div class="titles">
          <h1>
            Fork at <Foreign text={visitText(visit)} most={60} />
          </h1>
          <p class="soft">
            A new run that shares everything before this visit. The original does not change, and neither do
            files that later visits wrote.
          </p>
        </div>
      </div>
      <Await asked={why} what="Loading the visit">
        {(document) =>
          mayAct ? (
            <Prepared route={route} why={document} />
          ) : (
            <div class="card">
              <Blank title="This studio is read only." command={["fork", run, "--at", visitText(visit)]} />
            </div>
          )
        }
      </Await>
    </ScreenFrame>
  );
}

/** What a fork without edits would share says at which entry the handoff is taken. */
function Prepared({ route, why }: { readonly route: ForkRoute; readonly why: WhyDocument }): JSX.Element {
  const { run, visit } = route;
  const [plain, setPlain] = useState<JudgedDocument | null>(null);
  const [error, setError] = useState<RefusedRequest | null>(null);
  useEffect(() => {
    act<JudgedDocument>(`runs/${encodeURIComponent(run)}/judge`, { at: visitText(visit) }).then(
      setPlain,
      (reason: unknown) => setError(refusedOf(reason)),
    );
  }, [run, visit.step, visit.visit]);
  const shared = plain !== null && plain.sharedUntil > 0 ? plain.sharedUntil : null;
  const moment = useAsk<MomentDocument>(
    shared === null ? null : `runs/${encodeURIComponent(run)}/at/${shared}`,
  );
  if (error !== null) return <Failed error={error} />;
  if (plain === null) return <Loading what="Looking at what is shared" />;
  if (shared === null)
    return (
      <p class="note bad">
        {plain.errors.map(({ message }) => message).join(" ") || "This visit cannot be forked."}
      </p>
    );
  return (
    <Await asked={moment} what="Loading the moment">
      {({ handoff }) => <ForkForm route={route} before={forkBefore(why, handoff, plain)} plain={plain} />}
    </Await>
  );
}

type FormProps = { readonly route: ForkRoute; readonly before: ForkBefore; readonly plain: JudgedDocument };

function ForkForm({ route, before, plain }: FormProps): JSX.Element {
  const { run, visit } = route;
  const [edits, setEdits] = useState<ForkEdits>(NO_EDITS);
  const [judged, setJudged] = useState(plain);
  const [isForking, setForking] = useState(false);
  const [error, setError] = useState<RefusedRequest | null>(null);
  const [ticked, setTicked] = useState<string | null>(null);
  const { request, faults } = forkRequestOf(visit, before, edits);
  const sent = JSON.stringify(request);
  useEffect(() => {
    if (faults.length > 0) return;
    let isCurrent = true;
    // While typing the server is asked once, a moment after the last key.
    const timer = setTimeout(() => {
      act<JudgedDocument>(`runs/${encodeURIComponent(run)}/judge`, request).then(
        (answer) => isCurrent && setJudged(answer),
        () => undefined,
      );
    }, 250);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [run, sent, faults.length]);
  const wrong = [...faults, ...(faults.length > 0 ? [] : judged.errors)];
  const trust = (error?.document as Refusal | null | undefined)?.trust ?? null;
  const mayFork = !isForking && wrong.length === 0 && (trust === null || ticked === trust.digest);
  const forkNow = (how: "fork" | "part") => {
    if (!mayFork) return;
    setForking(true);
    setError(null);
    const body = trust === null ? request : { ...request, trust: trust.digest };
    act<StartedDocument>(`runs/${encodeURIComponent(run)}/${how}`, body).then(
      (started) => go(runAt(started.run)),
      (reason: unknown) => {
        setForking(false);
        setError(refusedOf(reason));
      },
    );
  };
  useKeys("Fork", { "Ctrl-Enter": { about: "Fork and go on", run: () => forkNow("fork") } });
  const words = editedWords(request);
  const faultsOf = (field: string) =>
    wrong.filter((one) => one.field === field).map(({ message }) => message);
  return (
    <div class="start">
      <div class="stack">
        <EditPart
          title="Answer"
          before={before.output}
          text={edits.output}
          faults={faultsOf("output")}
          onChange={(output) => setEdits((now) => ({ ...now, output }))}
          none="This visit has no answer that could be replaced: the fork asks again."
        />
        <EditPart
          title="Handoff"
          before={before.handoff}
          text={edits.handoff}
          faults={faultsOf("handoff")}
          onChange={(handoff) => setEdits((now) => ({ ...now, handoff }))}
        />
        {!before.isCommand && !edits.adopt && (
          <EditPart
            title="Prompt"
            hint="For this step from here on. Names such as {uv-topic} are filled in."
            before={before.prompt ?? ""}
            text={edits.prompt}
            faults={faultsOf("prompts")}
            onChange={(prompt) => setEdits((now) => ({ ...now, prompt }))}
          />
        )}
        {!before.isCommand && !edits.adopt && (
          <ModelPart
            before={before.model}
            text={edits.model}
            onChange={(model) => setEdits((now) => ({ ...now, model }))}
          />
        )}
        <section class="card">
          <div class="card-body">
            <label class="row check">
              <input
                type="checkbox"
                checked={edits.adopt}
                onChange={(event) => setEdits((now) => ({ ...now, adopt: event.currentTarget.checked }))}
              />
              Take the agent's files as they are now, with their prompts and models
            </label>
          </div>
        </section>
      </div>
      <aside class="stack">
        <section class="card">
          <div class="card-head">
            <h2>What the fork will be</h2>
          </div>
          <div class="card-body">
            <p>
              {words.length === 0 ? "A second try: nothing is edited." : `With another ${words.join(", ")}.`}
            </p>
            <p class="soft">
              Shares {count(judged.shared.length, "visit")}, up to entry {judged.sharedUntil}.
            </p>
            {judged.costLine !== null && (
              <p>
                Upper bound: <Foreign text={judged.costLine} most={400} />
              </p>
            )}
            <p class="soft">
              The world keeps what was done: files, commits and pushes of later visits are still there.
            </p>
            {trust !== null && (
              <TrustList
                trust={trust}
                isTicked={ticked === trust.digest}
                onTick={(on) => setTicked(on ? trust.digest : null)}
              />
            )}
            {error !== null && trust === null && <Failed error={error} />}
            <div class="actions">
              <button type="button" class="btn primary" disabled={!mayFork} onClick={() => forkNow("fork")}>
                Fork and go on <kbd aria-hidden="true">Ctrl-Enter</kbd>
              </button>
              <button type="button" class="btn" disabled={!mayFork} onClick={() => forkNow("part")}>
                Fork and rest
              </button>
            </div>
            <CopyCommand words={forkWords(run, request)} isMain />
            {(request.output ?? request.handoff ?? request.prompts) !== undefined && (
              <p class="soft small">For the command, save the edited texts under the names in it.</p>
            )}
            <PageLink to={runAt(run, visit)}>Back to the run</PageLink>
          </div>
        </section>
      </aside>
    </div>
  );
}

type EditProps = {
  readonly title: string;
  readonly hint?: string;
  /** null: there was nothing. */
  readonly before: string | null;
  /** null: it is not edited. */
  readonly text: string | null;
  readonly faults: readonly string[];
  readonly onChange: (text: string | null) => void;
  readonly none?: string;
};

function EditPart({ title, hint, before, text, faults, onChange, none }: EditProps): JSX.Element {
  const id = `edit-${title.toLowerCase()}`;
  return (
    <section class="card">
      <div class="card-head">
        <h2 class="grow">{title}</h2>
        {text !== null && text !== before && <span class="chip live">edited</span>}
        {before !== null && (
          <button type="button" class="btn small" onClick={() => onChange(text === null ? before : null)}>
            {text === null ? "Edit" : "Undo"}
          </button>
        )}
      </div>
      <div class="card-body">
        {before === null ? (
          <p class="soft">{none}</p>
        ) : text === null ? (
          before === "" ? (
            <p class="soft">Nothing stood here.</p>
          ) : (
            <ForeignBlock text={before} fold={12} label={`${title} as it was`} />
          )
        ) : (
          <>
            <Wide>
              <label class="field" for={id}>
                <span class="label">New</span>
                <textarea
                  id={id}
                  rows={12}
                  spellcheck={false}
                  aria-invalid={faults.length > 0}
                  aria-describedby={`${id}-about`}
                  value={text}
                  onInput={(event) => onChange(event.currentTarget.value)}
                />
              </label>
              <div class="field">
                <span class="label">Difference</span>
                <Diff before={before} after={text} label={`Difference of the ${title.toLowerCase()}`} />
              </div>
            </Wide>
            <div id={`${id}-about`} class="field">
              {hint !== undefined && <span class="hint">{hint}</span>}
              {faults.map((message) => (
                <span key={message} class="wrong">
                  <Foreign text={message} most={600} />
                </span>
              ))}
            </div>
          </>
        )}
      </div>
    </section>
  );
}

function Wide({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <div class="columns">{children}</div>;
}

type ModelProps = {
  readonly before: string;
  readonly text: string | null;
  readonly onChange: (text: string | null) => void;
};

function ModelPart({ before, text, onChange }: ModelProps): JSX.Element {
  const { project } = useProject();
  return (
    <section class="card">
      <div class="card-head">
        <h2 class="grow">Model</h2>
        {text !== null && text !== before && <span class="chip live">edited</span>}
      </div>
      <div class="card-body">
        <label class="field">
          <span class="label">Model of this step from here on</span>
          <input
            type="text"
            list="model-names"
            spellcheck={false}
            value={text ?? before}
            onInput={(event) =>
              onChange(event.currentTarget.value === before ? null : event.currentTarget.value)
            }
          />
        </label>
        <datalist id="model-names">
          {(project?.models ?? []).map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
    </section>
  );
}
