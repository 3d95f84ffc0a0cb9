/** A flow as a picture: steps are links, ways show how often they were taken, and a table says the same. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import { conditionText, labelText, targetText } from "../../../tell/graph-words.ts";
import type { Outline, OutlineNode } from "../../../tell/outline.ts";
import { go } from "../go.tsx";
import { useKeys } from "../keys.ts";
import {
  keysOfWay,
  MOST_DRAWN,
  outlineAround,
  pictureOf,
  wordsWidth,
  type Picture,
  type PictureBox,
  type PictureLine,
} from "../picture.ts";
import { hrefOf, type Route } from "../route.ts";
import { Foreign } from "./foreign.tsx";

/** What a screen adds to a step. */
export type StepLook = {
  /** The third line of its box. */
  readonly note?: string;
  /** `live`: something is done there now. */
  readonly tone?: "live" | "good" | "bad" | "warn";
  readonly isSelected?: boolean;
  /** It was never visited. */
  readonly isFaint?: boolean;
};

export type GraphLook = {
  readonly step: (id: string) => StepLook;
  /** How often a way was taken; null: that was not counted. */
  readonly taken: (ways: readonly string[]) => number | null;
  /** How often each of two sides took a way; their names are `A` and `B`. */
  readonly sides?: (ways: readonly string[]) => readonly [number, number];
};

type GraphProps = {
  readonly outline: Outline;
  readonly look: GraphLook;
  readonly to: (step: string) => Route;
  /** Lines in a box below its title. */
  readonly rows?: 1 | 2;
  readonly label: string;
  readonly tools?: ComponentChildren;
};

const ZOOMS = [0.25, 0.4, 0.55, 0.7, 0.85, 1, 1.25, 1.5, 2];

export function FlowPicture({ outline, look, to, rows = 2, label, tools }: GraphProps): JSX.Element {
  const near = outline.nodes.find(({ id }) => look.step(id).isSelected)?.id ?? outline.entry;
  const isWhole = outline.nodes.length <= MOST_DRAWN;
  const drawn = useMemo(
    () => (isWhole ? outline : outlineAround(outline, near)),
    [outline, isWhole ? "" : near],
  );
  const picture = useMemo(() => pictureOf(drawn, rows), [drawn, rows]);
  const [isTable, setTable] = useState(false);
  const [zoom, setZoom] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(0);
  useEffect(() => {
    const found = box.current;
    if (found === null) return;
    const watch = new ResizeObserver(() => setRoom(found.clientWidth));
    watch.observe(found);
    return () => watch.disconnect();
  }, [isTable]);
  const fitted = room === 0 ? 1 : Math.max(0.3, Math.min(1, (room - 2) / picture.width));
  const scale = zoom ?? fitted;
  const step = (by: 1 | -1) => {
    const next =
      by > 0 ? ZOOMS.find((one) => one > scale + 0.01) : ZOOMS.findLast((one) => one < scale - 0.01);
    setZoom(next ?? scale);
  };
  useKeys("Graph", {
    t: { about: "Graph as a table", run: () => setTable(!isTable) },
    f: { about: "Fit the graph", run: () => setZoom(null) },
    "+": { about: "Larger", run: () => step(1) },
    "-": { about: "Smaller", run: () => step(-1) },
  });
  return (
    <section class="card graph" aria-label={label}>
      <div class="card-head">
        <h2 class="grow">{label}</h2>
        {tools}
        {!isTable && (
          <div class="actions">
            <button type="button" class="btn quiet small" aria-label="Smaller" onClick={() => step(-1)}>
              −
            </button>
            <button type="button" class="btn quiet small" onClick={() => setZoom(null)}>
              Fit
            </button>
            <button type="button" class="btn quiet small" aria-label="Larger" onClick={() => step(1)}>
              +
            </button>
          </div>
        )}
        <button
          type="button"
          class="btn quiet small"
          aria-pressed={isTable}
          onClick={() => setTable(!isTable)}
        >
          Table
        </button>
      </div>
      {!isWhole && !isTable && (
        <p class="card-body soft small">
          {count(drawn.nodes.length, "step")} of {outline.nodes.length.toLocaleString("en")} are drawn, around{" "}
          <Foreign text={near} most={60} mono />. The table has all of them.
        </p>
      )}
      {isTable ? (
        <GraphTable outline={outline} look={look} to={to} />
      ) : (
        <div ref={box} class="canvas" tabIndex={0} role="group" aria-label={`${label}, as a picture`}>
          <Drawing picture={picture} scale={scale} look={look} to={to} outline={drawn} />
        </div>
      )}
    </section>
  );
}

type DrawingProps = {
  readonly picture: Picture;
  readonly scale: number;
  readonly look: GraphLook;
  readonly to: (step: string) => Route;
  readonly outline: Outline;
};

function Drawing({ picture, scale, look, to, outline }: DrawingProps): JSX.Element {
  const { width, height, boxes, lines } = picture;
  const counts = lines.map(({ ways }) => look.taken(ways));
  const sides = lines.map(({ ways }) => look.sides?.(ways) ?? null);
  const order = lines.map((_, place) => place).toSorted((a, b) => (counts[a] ?? 0) - (counts[b] ?? 0));
  return (
    <svg width={width * scale} height={height * scale} viewBox={`0 0 ${width} ${height}`} role="presentation">
      {order.map((place) => (
        <LineOf key={place} line={lines[place]!} count={counts[place] ?? null} sides={sides[place] ?? null} />
      ))}
      {boxes.map((box) =>
        box.node === null ? (
          <EndBox key={box.key} box={box} />
        ) : (
          <StepBox
            key={box.key}
            box={box}
            node={box.node}
            look={look.step(box.node.id)}
            to={to}
            outline={outline}
          />
        ),
      )}
    </svg>
  );
}

function LineOf({
  line,
  count,
  sides,
}: {
  readonly line: PictureLine;
  readonly count: number | null;
  readonly sides: readonly [number, number] | null;
}): JSX.Element {
  const { path, tip, label, words, anchor, isBack, isLoop } = line;
  const side = sideOf(sides);
  const kind = `way${isBack ? " back" : isLoop ? " loop" : ""}${count === null ? "" : count > 0 ? " taken" : " untaken"}${side === null ? (sides === null ? "" : " shared") : ` only-${side.toLowerCase()}`}`;
  const top = label.y - (words.length * 15) / 2 + 11;
  const times = timesText(count, sides);
  const wide =
    Math.max(...words.map((word) => wordsWidth(word)), wordsWidth(`${words.at(-1) ?? ""}${times}`)) + 4;
  const weight =
    count === null || count === 0
      ? {}
      : { style: { strokeWidth: Math.min(4, 1.6 + Math.log2(count) * 0.5) } };
  return (
    <g class={kind}>
      <path class="line" d={path} {...weight} />
      <path class="tip" d={tip} />
      {anchor === "middle" && words.length > 0 && (
        <rect
          class="under-words"
          x={label.x - wide / 2}
          y={label.y - (words.length * 15) / 2}
          width={wide}
          height={words.length * 15}
        />
      )}
      {words.map((word, place) => (
        <text key={place} x={label.x} y={top + place * 15} text-anchor={anchor}>
          {word}
          {place === words.length - 1 && times !== "" && <tspan class="times">{times}</tspan>}
        </text>
      ))}
    </g>
  );
}

/** The side that alone took it; null: both did, or none. */
function sideOf(sides: readonly [number, number] | null): "A" | "B" | null {
  if (sides === null || sides[0] > 0 === sides[1] > 0) return null;
  return sides[0] > 0 ? "A" : "B";
}

function timesText(count: number | null, sides: readonly [number, number] | null): string {
  const often = (times: number) => (times > 1 ? ` ×${times}` : "");
  const side = sideOf(sides);
  if (count === null || count === 0) return "";
  if (sides === null) return often(count);
  if (side !== null) return ` ${side}${often(count)}`;
  const [a, b] = sides;
  return a === b ? often(a) : ` A${often(a)} B${often(b)}`;
}

function EndBox({ box: { x, y, width, height, title, target } }: { readonly box: PictureBox }): JSX.Element {
  const kind = target?.kind === "end" ? (target.outcome === "completed" ? "end" : "end failed") : "end odd";
  return (
    <g class={kind}>
      <rect x={x - width / 2} y={y - height / 2} width={width} height={height} rx={height / 2} />
      <text x={x} y={y + 4} text-anchor="middle">
        {title}
      </text>
    </g>
  );
}

type StepBoxProps = {
  readonly box: PictureBox;
  readonly node: OutlineNode;
  readonly look: StepLook;
  readonly to: (step: string) => Route;
  readonly outline: Outline;
};

function StepBox({ box, node, look, to, outline }: StepBoxProps): JSX.Element {
  const { x, y, width, height, title, under } = box;
  const { note, tone, isSelected = false, isFaint = false } = look;
  const left = x - width / 2;
  const top = y - height / 2;
  const worst = node.findings.some(({ severity }) => severity === "error")
    ? " wrong"
    : node.findings.length > 0
      ? " odd"
      : "";
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to(node.id));
  };
  return (
    <a
      href={hrefOf(to(node.id))}
      class={`step ${node.kind}${worst}${tone === undefined ? "" : ` ${tone}`}${isSelected ? " selected" : ""}${isFaint ? " faint" : ""}`}
      {...(isSelected ? { "aria-current": "true" as const } : {})}
      data-step={node.id}
      onClick={open}
      onKeyDown={(event) => walk(event, node.id, outline)}
    >
      {node.isEntry && (
        <>
          <circle class="start" cx={x} cy={top - 18} r={4.5} />
          <path class="line" d={`M${x} ${top - 13}V${top - 6}`} />
          <path class="tip" d={`M${x} ${top}l-4.5 -8h9z`} />
        </>
      )}
      <rect x={left} y={top} width={width} height={height} rx={node.kind === "close" ? 16 : 7} />
      {tone !== undefined && <circle class="mark" cx={left + 14} cy={top + 19} r={4} />}
      <text class="title" x={x + (tone === undefined ? 0 : 6)} y={top + 23} text-anchor="middle">
        {`${title} `}
      </text>
      <text class="under" x={x} y={top + 40} text-anchor="middle">
        {`${under} `}
      </text>
      {note !== undefined && (
        <text class="note" x={x} y={top + 57} text-anchor="middle">
          {note}
        </text>
      )}
    </a>
  );
}

/** Arrow keys follow the ways: down and right to where a step leads, up and left to where it comes from. */
function walk(event: KeyboardEvent, from: string, { edges }: Outline): void {
  const isOn = event.key === "ArrowDown" || event.key === "ArrowRight";
  if (!isOn && event.key !== "ArrowUp" && event.key !== "ArrowLeft") return;
  const steps = isOn
    ? edges.flatMap((edge) =>
        edge.from === from && edge.to.kind === "step" && edge.to.step !== from ? [edge.to.step] : [],
      )
    : edges.flatMap((edge) =>
        edge.to.kind === "step" && edge.to.step === from && edge.from !== from ? [edge.from] : [],
      );
  const next = event.key === "ArrowDown" || event.key === "ArrowUp" ? steps[0] : steps.at(-1);
  if (next === undefined) return;
  event.preventDefault();
  const svg = (event.currentTarget as Element).closest("svg");
  const found = [...(svg?.querySelectorAll<SVGAElement>("a[data-step]") ?? [])].find(
    (link) => link.dataset["step"] === next,
  );
  found?.focus();
}

function GraphTable({
  outline,
  look,
  to,
}: {
  readonly outline: Outline;
  readonly look: GraphLook;
  readonly to: (step: string) => Route;
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Steps and ways">
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">State</th>
            <th scope="col">Leads to</th>
            <th scope="col" class="num">
              Taken
            </th>
          </tr>
        </thead>
        <tbody>
          {outline.nodes.flatMap((node) => {
            const edges = outline.edges.filter((edge) => edge.from === node.id && !edge.isTacit);
            const rows = Math.max(1, edges.length);
            const { note = "" } = look.step(node.id);
            return Array.from({ length: rows }, (_, place) => {
              const edge = edges[place];
              const condition = edge === undefined ? "" : conditionText(edge);
              return (
                <tr key={`${node.id} ${place}`}>
                  {place === 0 && (
                    <>
                      <th scope="rowgroup" rowSpan={rows}>
                        <a
                          href={hrefOf(to(node.id))}
                          class="mono"
                          onClick={(event) => {
                            event.preventDefault();
                            go(to(node.id));
                          }}
                        >
                          <Foreign text={node.id} most={60} />
                        </a>
                      </th>
                      <td rowSpan={rows}>{note}</td>
                    </>
                  )}
                  <td>
                    {edge !== undefined &&
                      `${labelText(edge)} → ${targetText(edge.to)}${condition === "" ? "" : ` [${condition}]`}`}
                  </td>
                  <td class="num">{edge !== undefined && takenText(edge, look)}</td>
                </tr>
              );
            });
          })}
        </tbody>
      </table>
    </div>
  );
}

function takenText(edge: Outline["edges"][number], look: GraphLook): string {
  const ways = keysOfWay({ from: edge.from, to: edge.to, edges: [edge] });
  const sides = look.sides?.(ways);
  if (sides !== undefined) return `A ${sides[0]} · B ${sides[1]}`;
  return String(look.taken(ways) ?? "");
}
