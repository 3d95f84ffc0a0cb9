/** The head of a run: how it stands, what it cost and what is left of its limits. */
import type { ComponentChildren, JSX } from "preact";
import { count, duration } from "../../../flow/text/figures.ts";
import type { RunDocument, RunLine } from "../../wire.ts";
import { dollars, percentOf, shortCount } from "../figures.ts";
import { PageLink } from "../go.tsx";
import { useSeconds } from "../listen.ts";
import { runAt, type Route, type RunTab } from "../route.ts";
import { RunActions } from "./run-actions.tsx";
import { CopyCommand } from "./copy.tsx";
import { Foreign } from "./foreign.tsx";
import { StateChip } from "./state.tsx";
import { Ago } from "./time.tsx";

export function RunHead({
  document,
  row,
}: {
  readonly document: RunDocument;
  readonly row: RunLine;
}): JSX.Element {
  const { shown, changes, dryRun } = document;
  const { run, agent, state, code } = row;
  const isOver = state !== "running";
  return (
    <>
      <div class="head">
        <div class="titles">
          <div class="row">
            <h1>
              <Foreign text={agent} most={60} />
            </h1>
            <StateChip state={state} code={code} />
            {dryRun && <span class="chip">dry run</span>}
          </div>
          <p class="soft">
            <span class="mono">
              <Foreign text={run} most={60} />
            </span>
            {" · started "}
            <Ago at={row.createdAt} />
            {row.facts !== null && row.facts.about !== "" && (
              <>
                {" · "}
                <Foreign text={row.facts.about} most={160} />
              </>
            )}
          </p>
        </div>
        <RunActions document={document} row={row} />
      </div>
      {isOver && shown.reason !== "" && (
        <p
          class={`note ${state === "completed" ? "good" : state === "failed" || state === "damaged" ? "bad" : "warn"}`}
        >
          <Foreign text={shown.reason} most={2000} />
        </p>
      )}
      <div class="card">
        <div class="card-body">
          <RunFigures document={document} row={row} />
          <hr />
          <RunFacts document={document} />
          {changes !== null && changes.length > 0 && (
            <p class="warn small">{`The agent's files changed since: ${count(changes.length, "difference")}.`}</p>
          )}
        </div>
      </div>
    </>
  );
}

function RunFigures({
  document,
  row,
}: {
  readonly document: RunDocument;
  readonly row: RunLine;
}): JSX.Element {
  const { shown, budget } = document;
  const isLiving = row.state === "running";
  const now = useSeconds(isLiving);
  const facts = row.facts;
  const turns = facts?.turns ?? shown.usage.turns;
  const tokens = facts?.tokens ?? shown.usage.inputTokens + shown.usage.outputTokens;
  const cost = facts === null ? shown.costUsd : facts.costUsd;
  const visits = facts?.visits ?? shown.iterations;
  const ms =
    isLiving && facts !== null
      ? Math.max(facts.drivenMs, now - Date.parse(row.updatedAt) + facts.drivenMs)
      : shown.durationMs;
  const limits = budget?.limits;
  return (
    <dl class="figures">
      <FigureOf name="Visits" value={String(visits)} used={visits} most={null} />
      <FigureOf name="Turns" value={String(turns)} used={turns} most={limits?.turns ?? null} />
      <FigureOf
        name="Tokens"
        value={shortCount(tokens)}
        used={tokens}
        most={limits?.tokens ?? null}
        words={shortCount}
      />
      <FigureOf
        name="Cost"
        value={dollars(cost)}
        used={cost ?? 0}
        most={limits?.costUsd ?? null}
        words={dollars}
      />
      <FigureOf name="Time" value={duration(ms)} used={ms} most={limits?.wallMs ?? null} words={duration} />
    </dl>
  );
}

type FigureProps = {
  readonly name: string;
  readonly value: string;
  readonly used: number;
  readonly most: number | null | undefined;
  readonly words?: (value: number) => string;
};

function FigureOf({ name, value, used, most, words = String }: FigureProps): JSX.Element {
  const share = most === null || most === undefined ? null : percentOf(used, most);
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {share !== null && most !== null && most !== undefined && (
          <>
            <small> of {words(most)}</small>
            <div
              class={share >= 80 ? "meter warn" : "meter"}
              role="img"
              aria-label={`${share}% of the limit`}
            >
              <i style={{ width: `${share}%` }} />
            </div>
          </>
        )}
      </dd>
    </div>
  );
}

function RunFacts({ document }: { readonly document: RunDocument }): JSX.Element {
  const { shown, cwd, backend, row } = document;
  const fork = shown.forkedFrom;
  const model = [backend.id, ...(backend.models ?? [])].join(" ");
  return (
    <div class="row spread">
      <dl class="inline">
        <Inline name="model">
          <Foreign text={model} mono />
        </Inline>
        <Inline name={shown.worktree === null ? "folder" : "branch"}>
          <Foreign text={shown.worktree?.branch ?? cwd} most={80} mono />
        </Inline>
        {shown.flow !== null && (
          <Inline name="flow">
            <span class="mono">{shown.flow.digest.slice(0, 12)}</span>
          </Inline>
        )}
        {fork !== null && (
          <Inline name="forked from">
            <PageLink to={runAt(fork.run, null, fork.seq)}>
              <Foreign text={`${fork.run} entry ${fork.seq}`} mono />
            </PageLink>
          </Inline>
        )}
        <Inline name="entries">{row.events}</Inline>
      </dl>
      <CopyCommand words={["show", row.run]} isMain />
    </div>
  );
}

function Inline({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const TABS: readonly { readonly name: string; readonly tab: RunTab | "talk" }[] = [
  { name: "Way", tab: "way" },
  { name: "Conversation", tab: "talk" },
  { name: "Effects", tab: "effects" },
  { name: "Log", tab: "log" },
  { name: "Document", tab: "document" },
];

export function RunTabs({ run, tab }: { readonly run: string; readonly tab: RunTab | "talk" }): JSX.Element {
  return (
    <nav class="tabs" aria-label="Parts of the run">
      {TABS.map((one) => {
        const to: Route =
          one.tab === "talk"
            ? { at: "talk", run, of: null }
            : { at: "run", run, tab: one.tab, visit: null, seq: null };
        return (
          <PageLink key={one.tab} to={to} current={one.tab === tab}>
            {one.name}
          </PageLink>
        );
      })}
    </nav>
  );
}
