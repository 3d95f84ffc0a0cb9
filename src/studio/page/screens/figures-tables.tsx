/** The tables of the figures: failure patterns, "done" and its checks, steps, retries, people, denials and ways. */
import type { ComponentChildren, JSX } from "preact";
import { duration } from "../../../flow/text/figures.ts";
import { targetText } from "../../../tell/graph-words.ts";
import type { FiguresDocument } from "../../wire-agents.ts";
import { dollars, percentOf, shortCount } from "../figures.ts";
import { Columns } from "../parts/columns.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { measured, sharesOf, stepMeasure } from "./figures-model.ts";
import type { OpenRuns } from "./runs-behind.tsx";

type Rows<K extends keyof FiguresDocument> = { readonly rows: FiguresDocument[K]; readonly open: OpenRuns };

type TableProps = {
  readonly title: string;
  readonly about: string;
  readonly columns: readonly string[];
  /** Columns from this one on are figures. */
  readonly figuresFrom?: number;
  readonly children: ComponentChildren;
};

function FigureTable({ title, about, columns, figuresFrom = 1, children }: TableProps): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2>{title}</h2>
        <span class="soft small">{about}</span>
      </div>
      <Columns label={title} names={columns} numbers={columns.length - figuresFrom}>
        {children}
      </Columns>
    </section>
  );
}

type NumberProps = {
  readonly value: number;
  readonly what: string;
  readonly in: readonly number[];
  readonly open: OpenRuns;
};

function RunNumber({ value, what, in: places, open }: NumberProps): JSX.Element {
  if (places.length === 0) return <>{value}</>;
  return (
    <button type="button" class="number" onClick={() => open(what, places)}>
      {value}
    </button>
  );
}

type OfStep = { readonly agent: string; readonly step: string };

function StepHead({ of: { agent, step } }: { readonly of: OfStep }): JSX.Element {
  return (
    <th scope="row">
      <Foreign text={agent} most={40} />
      <span class="of-agent">
        <Foreign text={step} most={60} mono />
      </span>
    </th>
  );
}

export function PatternTable({ rows, open }: Rows<"patterns">): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <FigureTable
      title="Failure patterns"
      about="How checks failed, and whether the run got over it"
      columns={["Check", "Pattern", "Hits", "Recovered", "Gave up", "Tries until then", "Tokens", "Cost"]}
      figuresFrom={2}
    >
      {rows.map((row) => {
        const name = `${row.check} ${row.pattern}`;
        return (
          <tr key={name}>
            <th scope="row">
              <Foreign text={row.check} most={50} />
            </th>
            <td>
              <Foreign text={row.pattern} most={50} mono />
            </td>
            <td class="num">
              <RunNumber value={row.hits} what={name} in={row.in} open={open} />
            </td>
            <td class="num">
              <RunNumber value={row.recovered} what={`${name}, recovered`} in={row.recoveredIn} open={open} />
            </td>
            <td class="num">
              <RunNumber
                value={row.gaveUpIn.length}
                what={`${name}, gave up`}
                in={row.gaveUpIn}
                open={open}
              />
            </td>
            <td class="num">{row.until === null ? "–" : row.until.claims.toFixed(1)}</td>
            <td class="num">{row.until === null ? "–" : shortCount(Math.round(row.until.tokens))}</td>
            <td class="num">{dollars(row.until?.costUsd ?? null)}</td>
          </tr>
        );
      })}
    </FigureTable>
  );
}

export function GateTable({ rows, open }: Rows<"gates">): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <FigureTable
      title='How often "done" was true'
      about="What a model claimed at a closing step, against what the checks found"
      columns={["Step", "Model", "Said", "True", "Share", "False in"]}
      figuresFrom={2}
    >
      {rows.map((row) => {
        const name = `${row.step} ${row.model}`;
        return (
          <tr key={`${row.agent} ${name}`}>
            <StepHead of={row} />
            <td>
              <Foreign text={row.model} most={50} mono />
            </td>
            <td class="num">
              <RunNumber value={row.said} what={name} in={row.in} open={open} />
            </td>
            <td class="num">{row.stood}</td>
            <td class="num">{percentOf(row.stood, row.said)} %</td>
            <td class="num">
              <RunNumber value={row.falseIn.length} what={`${name}, not true`} in={row.falseIn} open={open} />
            </td>
          </tr>
        );
      })}
    </FigureTable>
  );
}

export function CheckTable({ rows, open }: Rows<"checks">): JSX.Element | null {
  if (rows.length === 0) return null;
  return (
    <FigureTable
      title="Checks"
      about="A check that never failed may not be able to"
      columns={["Check", "Note", "Passed", "Failed", "Could not run"]}
      figuresFrom={2}
    >
      {rows.map((row) => (
        <tr key={row.check}>
          <th scope="row">
            <Foreign text={row.check} most={60} />
          </th>
          <td>{row.note !== null && <span class="chip warn">{row.note}</span>}</td>
          <td class="num">
            <RunNumber value={row.passed} what={`${row.check} ran`} in={row.in} open={open} />
          </td>
          <td class="num">
            <RunNumber value={row.failed} what={`${row.check} failed`} in={row.failedIn} open={open} />
          </td>
          <td class="num">{row.couldNotRun}</td>
        </tr>
      ))}
    </FigureTable>
  );
}

const MEASURES = {
  costUsd: "Share of the cost",
  tokens: "Share of the tokens",
  ms: "Share of the time",
} as const;

export function StepTable({ rows, open }: Rows<"steps">): JSX.Element | null {
  if (rows.length === 0) return null;
  const by = stepMeasure(rows);
  const sorted = rows.toSorted((a, b) => measured(b, by) - measured(a, by));
  const shares = sharesOf(sorted.map((row) => measured(row, by)));
  return (
    <FigureTable
      title="Cost per step"
      about={
        by === "ms" ? "No tokens were reported, so steps are compared by time" : "The most expensive first"
      }
      columns={["Step", MEASURES[by], "Runs", "Visits", "Turns", "Tokens", "Cost", "Time"]}
      figuresFrom={2}
    >
      {sorted.map((row, at) => (
        <tr key={`${row.agent} ${row.step}`}>
          <StepHead of={row} />
          <td class="share">
            <span class="meter" aria-hidden="true">
              <i style={{ width: `${Math.round((shares[at] ?? 0) * 100)}%` }} />
            </span>
          </td>
          <td class="num">
            <RunNumber value={row.in.length} what={`${row.agent} ${row.step}`} in={row.in} open={open} />
          </td>
          <td class="num">{row.visits}</td>
          <td class="num">{row.turns}</td>
          <td class="num">{shortCount(row.inputTokens + row.outputTokens)}</td>
          <td class="num">
            {dollars(row.costUsd)}
            {row.unpricedIn.length > 0 && row.costUsd !== null && <span class="soft"> +</span>}
          </td>
          <td class="num">{duration(row.ms)}</td>
        </tr>
      ))}
    </FigureTable>
  );
}

export function RetryTable({ rows, open }: Rows<"retries">): JSX.Element | null {
  const shown = rows.filter(
    ({ repairs, faults, aliases, fallbacks }) =>
      repairs + aliases + fallbacks + Object.keys(faults).length > 0,
  );
  if (shown.length === 0) return null;
  return (
    <FigureTable
      title="Retries"
      about="Answers that could not be used at once"
      columns={["Step", "Model", "Faults", "Answers", "Repairs", "Aliases", "Fallbacks"]}
      figuresFrom={3}
    >
      {shown.map((row) => (
        <tr key={`${row.agent} ${row.step} ${row.model}`}>
          <StepHead of={row} />
          <td>
            <Foreign text={row.model} most={50} mono />
          </td>
          <td>
            <Foreign
              text={Object.entries(row.faults)
                .map(([kind, times]) => `${kind} ×${times}`)
                .join(", ")}
              most={100}
              mono
            />
          </td>
          <td class="num">
            <RunNumber value={row.answers} what={`${row.agent} ${row.step}`} in={row.in} open={open} />
          </td>
          <td class="num">{row.repairs}</td>
          <td class="num">{row.aliases}</td>
          <td class="num">{row.fallbacks}</td>
        </tr>
      ))}
    </FigureTable>
  );
}

export function OtherTables({
  document,
  open,
}: {
  readonly document: FiguresDocument;
  readonly open: OpenRuns;
}): JSX.Element {
  const { people, denials, ways } = document;
  const unused = ways?.filter(({ taken }) => taken === 0) ?? [];
  return (
    <div class="columns">
      {people.length > 0 && (
        <FigureTable
          title="People"
          about="Questions and waits"
          columns={["About", "Asked", "Answered", "Expired", "Open", "Median wait"]}
        >
          {people.map((row) => (
            <tr key={row.about}>
              <th scope="row">{row.about}</th>
              <td class="num">
                <RunNumber value={row.asked} what={`Questions: ${row.about}`} in={row.in} open={open} />
              </td>
              <td class="num">{row.answered}</td>
              <td class="num">{row.expired}</td>
              <td class="num">{row.open}</td>
              <td class="num">{row.medianMs === null ? "–" : duration(row.medianMs)}</td>
            </tr>
          ))}
        </FigureTable>
      )}
      {denials.length > 0 && (
        <FigureTable
          title="Denied calls"
          about="By tool and step"
          columns={["Tool", "Step", "Times"]}
          figuresFrom={2}
        >
          {denials.map((row) => (
            <tr key={`${row.step} ${row.tool}`}>
              <th scope="row">
                <Foreign text={row.tool} most={50} mono />
              </th>
              <td>
                <Foreign text={row.step} most={60} mono />
              </td>
              <td class="num">
                <RunNumber value={row.times} what={`${row.tool} denied`} in={row.in} open={open} />
              </td>
            </tr>
          ))}
        </FigureTable>
      )}
      {unused.length > 0 && (
        <FigureTable
          title="Ways that no run took"
          about="In the flow as its files are now"
          columns={["From", "Label", "To"]}
          figuresFrom={3}
        >
          {unused.map((row, at) => (
            <tr key={at}>
              <th scope="row">
                <Foreign text={row.from} most={60} mono />
              </th>
              <td>
                <Foreign text={row.label} most={40} mono />
              </td>
              <td>
                <Foreign text={targetText(row.to)} most={80} mono />
              </td>
            </tr>
          ))}
        </FigureTable>
      )}
    </div>
  );
}
