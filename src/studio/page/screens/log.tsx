/** The log of a run: a line for each thing that happened, in the words of `lockstep logs`. */
import type { JSX } from "preact";
import { px } from "../figures.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import { LEVELS, type Level } from "../../../tell/log-line.ts";
import type { LogDocument, LogEntry } from "../../wire.ts";
import { PageLink } from "../go.tsx";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { usePages } from "../parts/pages.ts";
import { Blank, Failed, Loading } from "../parts/status.tsx";
import { useNarrow, useWindow } from "../parts/window.tsx";
import { runAt, visitText } from "../route.ts";

const PAGE_OF_LOG = 500;
const LINE = 28;
const NARROW_LINE = 48;

export function LogOf({ run, version }: { readonly run: string; readonly version: unknown }): JSX.Element {
  const [level, setLevel] = useState<Level>("info");
  const paged = usePages<LogDocument>(
    (from) => `runs/${encodeURIComponent(run)}/log?from=${from}&level=${level}`,
    PAGE_OF_LOG,
    version,
  );
  const total = paged.total ?? 0;
  const box = useRef<HTMLDivElement>(null);
  const isNarrow = useNarrow();
  const height = isNarrow ? NARROW_LINE : LINE;
  const { first, end, above, below } = useWindow(box, total, height, true);
  useEffect(() => paged.need(first, end), [first, end, total]);
  const damage = [...paged.pages.values()].find((page) => page.damage !== null)?.damage ?? null;
  const lineAt = (at: number): LogEntry | undefined =>
    paged.pages.get(Math.floor(at / PAGE_OF_LOG) * PAGE_OF_LOG)?.lines[at % PAGE_OF_LOG];
  return (
    <section class="card log" aria-label="Log">
      <div class="card-head">
        <h2 class="grow">
          Log <span class="soft small">{paged.total !== null && count(total, "line")}</span>
        </h2>
        <div class="actions" role="group" aria-label="Level">
          {LEVELS.map((one) => (
            <button
              key={one}
              type="button"
              class="btn small"
              aria-pressed={one === level}
              onClick={() => setLevel(one)}
            >
              {one}
            </button>
          ))}
        </div>
        <CopyCommand words={["logs", run]} isMain />
      </div>
      {paged.error !== null && <Failed error={paged.error} again={paged.again} />}
      {damage !== null && (
        <p class="note bad">
          The record is damaged{damage.seq === null ? "" : ` from entry ${damage.seq} on`}:{" "}
          <Foreign text={damage.why} most={400} />
        </p>
      )}
      {paged.total === null && paged.error === null && (
        <div class="card-body">
          <Loading what="Loading the log" />
        </div>
      )}
      {paged.total === 0 && <Blank title={`Nothing is logged at the level ${level}.`} />}
      <div ref={box} class="lines-box" tabIndex={0} role="group" aria-label="Lines">
        <div style={{ height: px(above) }} />
        {Array.from({ length: end - first }, (_, place) => {
          const line = lineAt(first + place);
          return line === undefined ? (
            <div key={first + place} class="log-line" style={{ height: px(height) }} />
          ) : (
            <LineOfLog key={first + place} run={run} line={line} height={height} />
          );
        })}
        <div style={{ height: px(below) }} />
      </div>
    </section>
  );
}

const TONES: { readonly [level in Level]: string } = { debug: "soft", info: "", warn: "warn", error: "bad" };

function LineOfLog({
  run,
  line,
  height,
}: {
  readonly run: string;
  readonly line: LogEntry;
  readonly height: number;
}): JSX.Element {
  const { timestamp, level, message, step, visit, seq } = line;
  return (
    <div class={`log-line ${TONES[level]}`} style={{ height: px(height) }}>
      <PageLink
        to={runAt(run, step === null || visit === 0 ? null : { step, visit }, seq)}
        class="soft num"
        title={timestamp}
      >
        {seq}
      </PageLink>
      <span class="soft nowrap time">{timestamp.slice(11, 23)}</span>
      <span class="level">{level}</span>
      <span class="message">
        <Foreign text={message} most={600} />
      </span>
      <span class="soft mono at">
        {step !== null && visit > 0 && <Foreign text={visitText({ step, visit })} most={32} />}
      </span>
    </div>
  );
}
