/** A flow as a picture: steps are links, ways show how often they were taken, and a table says the same. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { conditionText, labelText, targetText } from "../../../tell/graph-words.ts";
import type { Outline, OutlineNode } from "../../../tell/outline.ts";
import { go } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { keysOfWay, pictureOf, type Picture, type PictureBox, type PictureLine } from "../picture.ts";
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
  /** Steps on a way that is shown, in order. */
  readonly lit?: readonly string[];
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
  const picture = useMemo(() => pictureOf(outline, rows), [outline, rows]);
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
  const showsTable = isTable || picture.isTooLarge;
  return (
    <section class="card graph" aria-label={label}>
      <div class="card-head">
        <h2 class="grow">{label}</h2>
        {tools}
        {!showsTable && (
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
          aria-pressed={showsTable}
          onClick={() => setTable(!isTable)}
        >
          Table
        </button>
      </div>
      {showsTable ? (
        <GraphTable outline={outline} look={look} to={to} />
      ) : (
        <div ref={box} class="canvas" tabIndex={0} role="group" aria-label={`${label}, as a picture`}>
          <Drawing picture={picture} scale={scale} look={look} to={to} outline={outline} />
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
  const order = lines.map((_, place) => place).toSorted((a, b) => (counts[a] ?? 0) - (counts[b] ?? 0));
  return (
    <svg width={width * scale} height={height * scale} viewBox={`0 0 ${width} ${height}`} role="presentation">
      {order.map((place) => (
        <LineOf key={place} line={lines[place]!} count={counts[place] ?? null} />
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

function LineOf({ line, count }: { readonly line: PictureLine; readonly count: number | null }): JSX.Element {
  const { path, tip, label, words, anchor, isBack, isLoop } = line;
  const kind = `way${isBack ? " back" : isLoop ? " loop" : ""}${count === null ? "" : count > 0 ? " taken" : " untaken"}`;
  const top = label.y - (words.length * 15) / 2 + 11;
  const weight =
    count === null || count === 0
      ? {}
      : { style: { strokeWidth: Math.min(4, 1.6 + Math.log2(count) * 0.5) } };
  return (
    <g class={kind}>
      <path class="line" d={path} {...weight} />
      <path class="tip" d={tip} />
      {words.map((word, place) => (
        <text key={place} x={label.x} y={top + place * 15} text-anchor={anchor}>
          {word}
          {place === words.length - 1 && count !== null && count > 1 && (
            <tspan class="times"> ×{count}</tspan>
          )}
        </text>
      ))}
    </g>
  );
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
  const said = [title, under, note ?? "", isSelected ? "selected" : ""]
    .filter((part) => part !== "")
    .join(", ");
  return (
    <a
      href={hrefOf(to(node.id))}
      class={`step ${node.kind}${worst}${tone === undefined ? "" : ` ${tone}`}${isSelected ? " selected" : ""}${isFaint ? " faint" : ""}`}
      aria-label={said}
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
        {title}
      </text>
      <text class="under" x={x} y={top + 40} text-anchor="middle">
        {under}
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
                  <td class="num">
                    {edge !== undefined &&
                      (look.taken(keysOfWay({ from: edge.from, to: edge.to, edges: [edge] })) ?? "")}
                  </td>
                </tr>
              );
            });
          })}
        </tbody>
      </table>
    </div>
  );
}
