/** How an answer became a label, what the checks said about it, and where it led. */
import type { JSX } from "preact";
import type { Json, JsonObject } from "../../../flow/json.ts";
import { shownInLine } from "../../../flow/text/harmless.ts";
import type { Why } from "../../../tell/why.ts";
import { choiceText, namingText, standRows, whyMoveText } from "../../../tell/why-words.ts";
import { ChainPart, FactRow } from "./chain.tsx";
import { Foreign, ForeignBlock } from "./foreign.tsx";
import { JsonTree } from "./json.tsx";

type WhyMomentOf = Why["moments"][number];
type ReadOf = NonNullable<WhyMomentOf["read"]>;
type CheckedOf = NonNullable<WhyMomentOf["checked"]>;
type FollowedOf = NonNullable<WhyMomentOf["followed"]>;

export function ReadPart({
  why,
  step,
  read,
}: {
  readonly why: Why;
  readonly step: string;
  readonly read: ReadOf;
}): JSX.Element {
  const contract = why.contracts.find((one) => one.step === step);
  const field = contract?.decide.by === "field" ? contract.decide.path.join(".") : "";
  const handed = Object.keys(read.handoff).length > 0;
  return (
    <ChainPart
      title="Read"
      about={read.label === null ? "no label" : `label ${read.label}`}
      {...(read.errors.length > 0 ? { tone: "bad" as const } : {})}
    >
      <dl class="facts">
        {read.corrected !== null && (
          <FactRow name="corrected">
            <Foreign
              text={`${read.corrected.field} "${read.corrected.said}" to "${read.corrected.value}"`}
              most={400}
            />
          </FactRow>
        )}
        {read.errors.length > 0 && (
          <FactRow name="unusable">
            {read.errors.map((error) => (
              <div key={error} class="bad">
                ✗ <Foreign text={error} most={1000} />
              </div>
            ))}
          </FactRow>
        )}
        {read.label !== null && (
          <FactRow name="label">
            <b>
              <Foreign text={read.label} most={60} />
            </b>{" "}
            <span class={read.by === "fallback" || read.by === "miss" ? "warn" : "soft"}>
              {namingText(read.by, field, read.word === null ? null : jsonInLine(read.word))}
            </span>
          </FactRow>
        )}
        {read.reason !== "" && (
          <FactRow name="reason">
            <Foreign text={read.reason} most={1000} />
          </FactRow>
        )}
        {read.missing.length > 0 && (
          <FactRow name="absent">
            <span class="warn">
              <Foreign text={read.missing.join(", ")} most={400} />
            </span>
          </FactRow>
        )}
      </dl>
      {handed && (
        <div class="stack tight">
          <span class="soft small">Hands on</span>
          <JsonTree value={read.handoff} />
        </div>
      )}
    </ChainPart>
  );
}

export function ChecksPart({
  why,
  checked,
}: {
  readonly why: Why;
  readonly checked: CheckedOf;
}): JSX.Element {
  const { on, results, notRun, failures, maxFailures, overturned, onFailure } = checked;
  const to = why.decision?.to ?? null;
  const isBad = results.some(({ ok }) => !ok);
  return (
    <ChainPart
      title={`Checks before ${on === null ? "the end" : shownInLine(on, 40)}`}
      tone={isBad ? "bad" : "good"}
    >
      {results.map(({ name, ok, pattern, attempt, summary, params, unrecoverable, note }) => (
        <div key={name} class="stack tight">
          <div class="row">
            <span class={ok ? "good" : "bad"}>{ok ? "✓" : "✗"}</span>
            <b>
              <Foreign text={name} most={60} />
            </b>
            {!ok && (
              <span class="chip bad">
                <Foreign text={pattern} most={60} />
              </span>
            )}
            <span class="soft small">attempt {attempt}</span>
          </div>
          {note !== undefined && (
            <p class="warn">
              <Foreign text={note} most={400} />
            </p>
          )}
          {!ok && <ForeignBlock text={summary} fold={8} />}
          {unrecoverable === true && <p class="bad">Another attempt cannot help.</p>}
          {!ok && <CheckParams params={params} />}
        </div>
      ))}
      {notRun.map((name) => (
        <p key={name} class="soft">
          <Foreign text={name} most={60} /> was not run
        </p>
      ))}
      {overturned && (
        <p>
          Overturned:{" "}
          {onFailure === "retry" ? `failure ${failures} of ${maxFailures}` : "a failure is not retried"};{" "}
          {to === null ? (
            "the run ends"
          ) : (
            <>
              the run goes on at <Foreign text={to} most={80} mono />
            </>
          )}
          .
        </p>
      )}
    </ChainPart>
  );
}

/** What a command printed: the summary is made from it. */
const RAW_OUTPUT: ReadonlySet<string> = new Set(["stdout", "stderr", "summary", "command"]);

function CheckParams({ params }: { readonly params: JsonObject }): JSX.Element {
  const all = Object.entries(params);
  const read = Object.fromEntries(all.filter(([name]) => !RAW_OUTPUT.has(name)));
  const raw = Object.fromEntries(all.filter(([name]) => RAW_OUTPUT.has(name)));
  return (
    <>
      {Object.keys(read).length > 0 && <JsonTree value={read} open={1} label="read from the output" />}
      {Object.keys(raw).length > 0 && <JsonTree value={raw} open={0} label="output" />}
    </>
  );
}

export function EdgePart({ followed }: { readonly followed: FollowedOf }): JSX.Element {
  const { label, choices, move, why, stop, isTaken } = followed;
  return (
    <ChainPart title="Edge">
      <dl class="facts">
        {choices.length > 0 && (
          <FactRow name="because">
            {choices.map((choice, at) => (
              <div key={at}>
                <Foreign text={choiceText(choice, (value) => jsonInLine(value))} most={400} />
              </div>
            ))}
          </FactRow>
        )}
        {stop !== null && (
          <FactRow name="stop rule">
            {standRows(stop).map((row) => (
              <div key={row}>
                <Foreign text={row} most={400} />
              </div>
            ))}
          </FactRow>
        )}
        {why !== null && (
          <FactRow name="no way on">
            <span class="bad">
              <Foreign text={why} most={1000} />
            </span>
          </FactRow>
        )}
        {isTaken && (
          <FactRow name="taken">
            <Foreign text={`${label} → ${move === null ? "" : whyMoveText(move)}`} most={300} />
          </FactRow>
        )}
      </dl>
    </ChainPart>
  );
}

function jsonInLine(value: Json): string {
  return shownInLine(typeof value === "string" ? value : JSON.stringify(value), 80);
}
