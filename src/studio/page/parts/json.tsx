/** A JSON value as a tree that folds. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import { isObject, type Json } from "../../../flow/json.ts";
import { Foreign, ForeignBlock } from "./foreign.tsx";

type TreeProps = {
  readonly value: Json;
  /** JSON pointers of what is marked as changed. */
  readonly marked?: readonly string[];
  /** How deep it is open at first. */
  readonly open?: number;
  /** What the value as a whole is called. */
  readonly label?: string;
};

export function JsonTree({ value, marked = [], open = 2, label }: TreeProps): JSX.Element {
  return (
    <div class="json mono">
      <Value
        value={value}
        pointer=""
        marked={marked}
        open={open}
        {...(label === undefined ? {} : { name: label })}
      />
    </div>
  );
}

/** What an answer calls. `open`: how deep each input is open at first. */
export function CalledTools({
  calls,
  open = 2,
}: {
  readonly calls: readonly ToolCall[];
  readonly open?: number;
}): JSX.Element {
  return (
    <>
      {calls.map(({ id, name, input }) => (
        <div key={id} class="stack tight">
          <span>
            Calls <Foreign text={name} mono />
          </span>
          <JsonTree value={input} open={open} />
        </div>
      ))}
    </>
  );
}

type ToolCall = { readonly id: string; readonly name: string; readonly input: Json };

type ValueProps = Required<Omit<TreeProps, "label">> & { readonly name?: string; readonly pointer: string };

/** More members than this are drawn when they are asked for. */
const MOST_MEMBERS = 100;

function Value({ value, name, pointer, marked, open }: ValueProps): JSX.Element {
  const isMarked = marked.includes(pointer);
  const label = name !== undefined && (
    <span class="key">
      <Foreign text={name} most={80} />:{" "}
    </span>
  );
  const members: readonly (readonly [string, Json])[] | null = Array.isArray(value)
    ? value.map((item: Json, at) => [String(at), item] as const)
    : isObject(value)
      ? Object.entries(value)
      : null;
  if (members === null)
    return (
      <div class={isMarked ? "leaf marked" : "leaf"}>
        {label}
        <Leaf value={value} />
        {isMarked && <span class="hidden"> (changed)</span>}
      </div>
    );
  const words = Array.isArray(value)
    ? `[${count(members.length, "item")}]`
    : `{${count(members.length, "member")}}`;
  if (members.length === 0)
    return (
      <div class="leaf">
        {label}
        <span class="soft">{words}</span>
      </div>
    );
  const holdsMark = marked.some((one) => one.startsWith(`${pointer}/`));
  return (
    <Branch isOpen={open > 0 || holdsMark} label={label} words={words} isMarked={isMarked}>
      {() =>
        members.map(([key, item]) => (
          <Value
            key={key}
            name={key}
            value={item}
            pointer={`${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`}
            marked={marked}
            open={open - 1}
          />
        ))
      }
    </Branch>
  );
}

type BranchProps = {
  readonly isOpen: boolean;
  readonly label: JSX.Element | false;
  readonly words: string;
  readonly isMarked: boolean;
  readonly children: () => readonly JSX.Element[];
};

function Branch({ isOpen, label, words, isMarked, children }: BranchProps): JSX.Element {
  const [open, setOpen] = useState(isOpen);
  const [most, setMost] = useState(MOST_MEMBERS);
  const members = open ? children() : [];
  return (
    <details
      class={isMarked ? "marked" : undefined}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        {label}
        <span class="soft">{words}</span>
      </summary>
      {members.slice(0, most)}
      {members.length > most && (
        <button type="button" class="btn small" onClick={() => setMost(most * 10)}>
          Show {members.length - most} more
        </button>
      )}
    </details>
  );
}

const SHORT = 160;

function Leaf({ value }: { readonly value: Json }): JSX.Element {
  if (typeof value !== "string") return <span class="atom">{JSON.stringify(value)}</span>;
  if (value.length <= SHORT && !value.includes("\n"))
    return (
      <span class="words">
        "<Foreign text={value} most={SHORT} />"
      </span>
    );
  return <ForeignBlock text={value} fold={12} />;
}
