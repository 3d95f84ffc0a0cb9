/** What runs did to the world, or meant to: of one run, or of all of them. */
import type { JSX } from "preact";
import { count } from "../../../flow/text/figures.ts";
import type { EffectsDocument } from "../../wire.ts";
import { useAsk } from "../ask.ts";
import { effectRows } from "../effect-rows.ts";
import { ScreenFrame } from "../frame.tsx";
import { PageLink } from "../go.tsx";
import { useLive } from "../listen.ts";
import { Columns } from "../parts/columns.tsx";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await, Blank } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { runAt, visitText } from "../route.ts";

export function EffectsOf({ run }: { readonly run: string }): JSX.Element {
  const version = useLive((now) => now.runs.get(run)?.events ?? 0);
  const asked = useAsk<EffectsDocument>(`runs/${encodeURIComponent(run)}/effects`, version);
  return (
    <Await asked={asked} what="Loading the effects">
      {(document) => (
        <>
          {document.worktree !== null && (
            <section class="card" aria-label="Worktree">
              <div class="card-head">
                <h2>Worktree</h2>
              </div>
              <div class="card-body">
                <dl class="facts">
                  <dt>branch</dt>
                  <dd>
                    <Foreign text={document.worktree.branch} mono /> <span class="soft">from</span>{" "}
                    <Foreign text={document.worktree.base} mono />
                  </dd>
                  <dt>folder</dt>
                  <dd>
                    <Foreign text={document.worktree.path} most={400} mono />
                  </dd>
                  <dt>now</dt>
                  <dd>
                    {document.worktree.kept ? "kept: the run has not removed it" : "removed by the run"}
                  </dd>
                </dl>
              </div>
            </section>
          )}
          <EffectTable document={document} isOfAll={false} />
          <CopyCommand words={["show", run]} isMain />
        </>
      )}
    </Await>
  );
}

export function EffectsScreen(): JSX.Element {
  const version = useLive((now) => now.runs);
  const asked = useAsk<EffectsDocument>("effects", version.size);
  return (
    <ScreenFrame crumbs={[{ text: "Effects" }]}>
      <div class="head">
        <div class="titles">
          <h1>Effects</h1>
          <p class="soft">What runs did to the world, newest first.</p>
        </div>
      </div>
      <Await asked={asked} what="Loading the effects">
        {(document) => <EffectTable document={document} isOfAll />}
      </Await>
    </ScreenFrame>
  );
}

const TONES = { intended: "warn", held: "calm", applied: "good", failed: "bad" } as const;

function EffectTable({
  document,
  isOfAll,
}: {
  readonly document: EffectsDocument;
  readonly isOfAll: boolean;
}): JSX.Element {
  const { rows, unheard } = effectRows(document.effects);
  if (rows.length === 0)
    return (
      <div class="card">
        <Blank
          title={
            isOfAll ? "No run has done anything to the world." : "The run has done nothing to the world."
          }
        >
          <p>
            Commits, pushes, pull requests, labels and files that a run writes outside of its steps are listed
            here.
          </p>
        </Blank>
      </div>
    );
  return (
    <section class="card effects" aria-label="Effects">
      <div class="card-head">
        <h2 class="grow">{count(rows.length, "effect")}</h2>
        {document.dryRun && <span class="chip">dry run: nothing was done</span>}
        {unheard > 0 && <span class="chip warn">{unheard} intended, and not known to be done</span>}
      </div>
      <Columns label="Table of effects" names={["State", "What", "Detail", "From", "When"]} numbers={1}>
        {rows.map((effect, at) => (
          <tr key={at}>
            <td>
              <span class={`chip ${TONES[effect.state]}`}>{effect.state}</span>
            </td>
            <td>
              <b>
                <Foreign text={effect.kind} most={60} />
              </b>{" "}
              <Foreign text={effect.target} most={120} mono />
            </td>
            <td>
              <Foreign text={effect.detail} most={600} />
            </td>
            <td class="nowrap">
              <PageLink
                to={runAt(
                  effect.run,
                  effect.step === null || effect.visit === null
                    ? null
                    : { step: effect.step, visit: effect.visit },
                )}
              >
                {isOfAll && <Foreign text={`${effect.agent} ${effect.run} `} most={80} />}
                {effect.step === null || effect.visit === null ? (
                  isOfAll ? (
                    ""
                  ) : (
                    "the run"
                  )
                ) : (
                  <Foreign text={visitText({ step: effect.step, visit: effect.visit })} most={60} mono />
                )}
              </PageLink>
            </td>
            <td class="num soft">
              <Ago at={effect.at} />
            </td>
          </tr>
        ))}
      </Columns>
    </section>
  );
}
