/** What was said to the model and by it, one conversation at a time. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import type { RunDocument, TalkDocument } from "../../wire.ts";
import { useAsk } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { stepFocus, useKeys } from "../keys.ts";
import { useLive } from "../listen.ts";
import { CopyButton, CopyCommand } from "../parts/copy.tsx";
import { Foreign, ForeignBlock } from "../parts/foreign.tsx";
import { CalledTools, JsonTree } from "../parts/json.tsx";
import { usePages } from "../parts/pages.ts";
import { RunHead, RunTabs } from "../parts/run-head.tsx";
import { Await, Blank, Failed, Loading } from "../parts/status.tsx";
import { ALL_RUNS, runAt, visitText, type Route } from "../route.ts";

type TalkRoute = Extract<Route, { readonly at: "talk" }>;
type UtteranceOf = TalkDocument["utterances"][number];

const PAGE_OF_TALK = 200;

export function TalkScreen({ route }: { readonly route: TalkRoute }): JSX.Element {
  const { run } = route;
  const row = useLive((now) => now.runs.get(run) ?? null);
  const document = useAsk<RunDocument>(`runs/${encodeURIComponent(run)}`, row?.state);
  return (
    <ScreenFrame
      crumbs={[
        { text: "Runs", to: ALL_RUNS },
        { text: `${document.value?.row.agent ?? row?.agent ?? ""} ${run}`.trim(), to: runAt(run) },
        { text: "Conversation" },
      ]}
    >
      {document.value === null && <h1 class="hidden">Conversation</h1>}
      <Await asked={document} what="Loading the run">
        {(value) => (
          <>
            <RunHead document={value} row={row ?? value.row} />
            <RunTabs run={run} tab="talk" />
            <Talk route={route} version={row?.events ?? 0} />
          </>
        )}
      </Await>
    </ScreenFrame>
  );
}

function Talk({ route, version }: { readonly route: TalkRoute; readonly version: number }): JSX.Element {
  const { run, of } = route;
  const [find, setFind] = useState("");
  const query = [
    ...(of === null ? [] : [`of=${encodeURIComponent(of)}`]),
    ...(find === "" ? [] : [`find=${encodeURIComponent(find)}`]),
  ];
  const paged = usePages<TalkDocument>(
    (from) => `runs/${encodeURIComponent(run)}/talk?${[`from=${from}`, ...query].join("&")}`,
    PAGE_OF_TALK,
    version,
  );
  const list = useRef<HTMLOListElement>(null);
  const [pages, setPages] = useState(1);
  useEffect(() => setPages(1), [of, find]);
  useEffect(() => paged.need(0, Math.min(paged.total ?? 1, pages * PAGE_OF_TALK)), [pages, paged.total]);
  const first = paged.pages.get(0);
  const utterances = Array.from(
    { length: pages },
    (_, page) => paged.pages.get(page * PAGE_OF_TALK)?.utterances ?? [],
  ).flat();
  const step = (by: number, isTurn: boolean) =>
    stepFocus(isTurn ? "li[data-role=assistant]" : "li[data-role]", by, list.current);
  useKeys("Conversation", {
    n: { about: "Next utterance", run: () => step(1, false) },
    p: { about: "Previous utterance", run: () => step(-1, false) },
    N: { about: "Next turn of the model", run: () => step(1, true) },
    P: { about: "Previous turn of the model", run: () => step(-1, true) },
  });
  if (first === undefined)
    return paged.error === null ? (
      <Loading what="Loading the conversation" />
    ) : (
      <Failed error={paged.error} again={paged.again} />
    );
  const chosen = first.of;
  if (first.conversations.length === 0)
    return (
      <div class="card">
        <Blank title="No model was asked.">
          <p>Commands perform all the steps that were visited, or nothing has been asked yet.</p>
        </Blank>
      </div>
    );
  return (
    <>
      <div class="filters">
        {first.conversations.length > 1 && (
          <select
            aria-label="Conversation"
            value={chosen}
            onChange={(event) => go({ ...route, of: event.currentTarget.value }, { replace: true })}
          >
            {first.conversations.map((one) => (
              <option key={one.of} value={one.of}>
                {`${one.of} (${count(one.count, "utterance")})`}
              </option>
            ))}
          </select>
        )}
        <span class="soft small">
          {count(first.total, "utterance")}
          {find !== "" && " with these words"}
        </span>
        <span class="grow" />
        <input
          type="search"
          placeholder="Find in this conversation"
          aria-label="Find in this conversation"
          onChange={(event) => setFind(event.currentTarget.value.trim())}
        />
        <CopyButton text={() => utterances.map((one) => JSON.stringify(one)).join("\n")}>
          Copy as JSON lines
        </CopyButton>
        <CopyCommand words={["logs", run, "--transcript"]} isMain />
      </div>
      {paged.error !== null && <Failed error={paged.error} again={paged.again} />}
      {first.damage !== null && (
        <p class="note bad">
          The record is damaged: <Foreign text={first.damage.why} most={400} />
        </p>
      )}
      <ol class="talk" ref={list}>
        {utterances.map((one) => (
          <UtteranceItem key={one.index} run={run} utterance={one} />
        ))}
      </ol>
      {pages * PAGE_OF_TALK < (paged.total ?? 0) && (
        <div>
          <button type="button" class="btn" onClick={() => setPages(pages + 1)}>
            {`Show the next ${Math.min(PAGE_OF_TALK, (paged.total ?? 0) - pages * PAGE_OF_TALK)} of ${paged.total}`}
          </button>
        </div>
      )}
    </>
  );
}

const SPEAKERS = {
  system: "System",
  user: "To the model",
  assistant: "Model",
  tool: "Tools",
  error: "Error",
} as const;

function UtteranceItem({
  run,
  utterance,
}: {
  readonly run: string;
  readonly utterance: UtteranceOf;
}): JSX.Element {
  const { role, step, visit, turn, timestamp } = utterance;
  return (
    <li class={`utterance ${role}`} data-role={role} tabIndex={-1}>
      <div class="said-by">
        <b>{SPEAKERS[role]}</b>
        <PageLink to={runAt(run, { step, visit })} class="mono small">
          <Foreign text={visitText({ step, visit })} most={48} />
        </PageLink>
        <span class="soft small">turn {turn}</span>
        <time class="soft small" dateTime={timestamp} title={timestamp}>
          {timestamp.slice(11, 19)}
        </time>
        <span class="grow" />
        <CopyButton text={() => textOf(utterance)} label={`Copy what was said by ${SPEAKERS[role]}`} />
      </div>
      <Words utterance={utterance} />
    </li>
  );
}

function textOf(utterance: UtteranceOf): string {
  return utterance.role === "tool" ? JSON.stringify(utterance.results, null, 2) : utterance.text;
}

function Words({ utterance }: { readonly utterance: UtteranceOf }): JSX.Element {
  switch (utterance.role) {
    case "tool":
      return (
        <>
          {utterance.results.map(({ id, name, ok, content, denied }) => (
            <div key={id} class="stack tight">
              <span>
                <span class={denied === undefined && ok ? "good" : "bad"}>
                  {denied !== undefined ? "denied" : ok ? "✓" : "✗"}
                </span>{" "}
                <Foreign text={name} mono />
              </span>
              <ForeignBlock text={denied ?? content} />
            </div>
          ))}
        </>
      );
    case "assistant":
      return (
        <>
          {utterance.text !== "" && <ForeignBlock text={utterance.text} />}
          {utterance.output !== undefined && <JsonTree value={utterance.output} open={3} />}
          <CalledTools calls={utterance.calls} />
        </>
      );
    case "error":
      return (
        <p class="bad">
          <Foreign text={utterance.text} most={2000} />
        </p>
      );
    case "system":
      return (
        <details>
          <summary>{count(utterance.text.length, "character")}</summary>
          <ForeignBlock text={utterance.text} />
        </details>
      );
    case "user":
      return <ForeignBlock text={utterance.text} />;
  }
}
