/** The moment of a run that is looked at: any of its entries, or the newest one as it comes. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { duration } from "../../../flow/text/figures.ts";
import type { Frame } from "../../../tell/frames.ts";
import { useKeys } from "../keys.ts";
import { Foreign } from "./foreign.tsx";

type MomentProps = {
  readonly frames: readonly Frame[];
  /** null: the newest entry. */
  readonly seq: number | null;
  readonly onMove: (seq: number | null) => void;
  readonly isLiving: boolean;
};

const SPEEDS = [1, 10, 100] as const;
const TICK = 100;

export function MomentSlider({ frames, seq, onMove, isLiving }: MomentProps): JSX.Element | null {
  const first = frames[0]?.[0] ?? 1;
  const last = frames.at(-1)?.[0] ?? 1;
  const at = Math.max(first, Math.min(seq ?? last, last));
  const frame = frames[at - first];
  const [speed, setSpeed] = useState<number | null>(null);
  const move = (next: number) => onMove(next >= last ? null : Math.max(first, next));
  useEffect(() => {
    if (speed === null) return;
    // Ten entries a second at 10×: one at each tick.
    const timer = setTimeout(
      () => {
        const next = at + Math.max(1, speed / 10);
        if (next >= last) setSpeed(null);
        move(next);
      },
      speed === 1 ? TICK * 10 : TICK,
    );
    return () => clearTimeout(timer);
  }, [speed, at, last]);
  const visitStep = (by: 1 | -1) => {
    const isBegin = (one: Frame) => one[6]?.began !== undefined;
    const found =
      by > 0
        ? frames.find((one) => one[0] > at && isBegin(one))
        : frames.findLast((one) => one[0] < at && isBegin(one));
    if (found !== undefined) move(found[0]);
  };
  const play = () => {
    if (seq === null) onMove(first);
    setSpeed(speed === null ? 10 : null);
  };
  useKeys("Moment", {
    "[": { about: "Entry before", run: () => move(at - 1) },
    "]": { about: "Entry after", run: () => move(at + 1) },
    "{": { about: "Visit before", run: () => visitStep(-1) },
    "}": { about: "Visit after", run: () => visitStep(1) },
    Home: { about: "First entry", run: () => move(first) },
    End: { about: "Newest entry", run: () => onMove(null) },
    Space: { about: "Play", run: play },
  });
  if (frame === undefined) return null;
  const [, ms, type, step, visit] = frame;
  return (
    <section class="moment" aria-label="Moment">
      <button
        type="button"
        class="btn small"
        onClick={play}
        aria-label={speed === null ? "Play" : "Stop playing"}
      >
        {speed === null ? "▶" : "❚❚"}
      </button>
      <div class="speeds" role="group" aria-label="Speed">
        {SPEEDS.map((one) => (
          <button
            key={one}
            type="button"
            class="btn quiet small"
            aria-pressed={speed === one}
            onClick={() => setSpeed(speed === one ? null : one)}
          >
            {one}×
          </button>
        ))}
      </div>
      <input
        type="range"
        class="grow"
        min={first}
        max={last}
        value={at}
        aria-label="Entry"
        aria-valuetext={`Entry ${at} of ${last}, ${type}`}
        onInput={(event) => move(Number(event.currentTarget.value))}
      />
      <output class="small">
        <span class="nowrap">
          <b>{at}</b> of {last}
        </span>
        <span class="soft nowrap"> · {duration(ms)}</span>
        <span class="what soft">
          {" "}
          · {type}
          {step !== null && (
            <>
              {" "}
              <Foreign text={`${step}@${visit}`} most={40} />
            </>
          )}
        </span>
      </output>
      <button type="button" class="btn small" aria-pressed={seq === null} onClick={() => onMove(null)}>
        {isLiving ? "Live" : "End"}
      </button>
    </section>
  );
}
