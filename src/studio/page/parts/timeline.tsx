/** What a run did when: a row for each step, and a table that says the same. */
import type { JSX } from "preact";
import { px } from "../figures.ts";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, duration } from "../../../flow/text/figures.ts";
import type { Frame } from "../../../tell/frames.ts";
import { go } from "../go.tsx";
import { runAt, visitText } from "../route.ts";
import { timelineOf, type BarKind } from "../timeline.ts";
import { Foreign } from "./foreign.tsx";

const KIND_NAMES: { readonly [kind in BarKind]: string } = {
  model: "model",
  tools: "tools",
  checks: "checks",
  hooks: "hooks",
  person: "waiting for a person",
  waiting: "waiting before another try",
};

type TimesProps = {
  readonly run: string;
  readonly frames: readonly Frame[];
  readonly seq: number | null;
  readonly visit: { readonly step: string; readonly visit: number } | null;
};

export function Times({ run, frames, seq, visit }: TimesProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [isTable, setTable] = useState(false);
  useEffect(() => {
    const found = box.current;
    if (found === null) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(80, found.clientWidth)));
    watch.observe(found);
    return () => watch.disconnect();
  }, [isTable]);
  const timeline = useMemo(() => timelineOf(frames, width), [frames, width]);
  const kinds = [...new Set(timeline.rows.flatMap(({ bars }) => bars.map(({ kind }) => kind)))];
  return (
    <section class="card times" aria-label="Timeline">
      <div class="card-head">
        <h2>Timeline</h2>
        <span class="soft small grow">{duration(timeline.ms)} in which the run was driven</span>
        <ul class="legend">
          {kinds.map((kind) => (
            <li key={kind}>
              <i class={`bar ${kind}`} />
              {KIND_NAMES[kind]}
            </li>
          ))}
        </ul>
        <button
          type="button"
          class="btn quiet small"
          aria-pressed={isTable}
          onClick={() => setTable(!isTable)}
        >
          Table
        </button>
      </div>
      {isTable ? (
        <TimesTable rows={timeline.rows} />
      ) : (
        <div class="lanes">
          <div class="names" aria-hidden="true">
            {timeline.rows.map(({ step }) => (
              <div key={step} class="mono">
                <Foreign text={step} most={40} />
              </div>
            ))}
          </div>
          <div
            ref={box}
            class="tracks"
            role="img"
            aria-label={`${count(timeline.rows.length, "step")} over ${duration(timeline.ms)}; the table has the figures`}
          >
            {timeline.rows.map(({ step, bars }) => (
              <div key={step} class="track">
                {bars.map((bar) => (
                  <i
                    key={bar.seq}
                    class={`bar ${bar.kind}${visit !== null && bar.step === visit.step && bar.visit === visit.visit ? " selected" : ""}`}
                    style={{ left: px(bar.x), width: px(bar.width) }}
                    title={`${visitText(bar)} · ${KIND_NAMES[bar.kind]} · ${duration(bar.ms)}${bar.merged > 1 ? ` in ${bar.merged} parts` : ""}`}
                    onClick={() =>
                      go(runAt(run, { step: bar.step, visit: bar.visit }, seq), { replace: true })
                    }
                  />
                ))}
              </div>
            ))}
            {timeline.cuts.map((cut) => (
              <span
                key={cut.x}
                class="cut"
                style={{ left: px(cut.x) }}
                title={`${duration(cut.ms)} in which nothing drove the run`}
              />
            ))}
            {seq !== null && <span class="now" style={{ left: px(timeline.xOf(seq)) }} />}
          </div>
        </div>
      )}
    </section>
  );
}

function TimesTable({ rows }: { readonly rows: ReturnType<typeof timelineOf>["rows"] }): JSX.Element {
  const kinds = Object.keys(KIND_NAMES) as BarKind[];
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Time for each step">
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            {kinds.map((kind) => (
              <th key={kind} scope="col" class="num">
                {KIND_NAMES[kind]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ step, bars }) => (
            <tr key={step}>
              <th scope="row" class="mono">
                <Foreign text={step} most={60} />
              </th>
              {kinds.map((kind) => {
                const ms = bars.filter((bar) => bar.kind === kind).reduce((sum, bar) => sum + bar.ms, 0);
                return (
                  <td key={kind} class="num">
                    {ms === 0 ? "" : duration(ms)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
