/** The fields of the form that starts a run. */
import type { ComponentChildren, JSX } from "preact";
import type { Parameter } from "../../../flow/flow.ts";
import { Foreign } from "../parts/foreign.tsx";
import { useProject } from "../project.ts";
import { fieldHint, fieldKind, type FreeRow, type StartChoices } from "./start-model.ts";

export function LabelledField({
  name,
  hint,
  children,
}: {
  readonly name: string;
  readonly hint?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <label class="field">
      <span class="label">{name}</span>
      {children}
      {hint !== undefined && <span class="hint">{hint}</span>}
    </label>
  );
}

type FieldProps = {
  readonly parameter: Parameter;
  readonly text: string;
  /** The value that was taken over holds a secret, which the page never had. */
  readonly isHidden: boolean;
  readonly errors: readonly string[];
  readonly onChange: (text: string) => void;
};

export function ParameterField({ parameter, text, isHidden, errors, onChange }: FieldProps): JSX.Element {
  const { name, description, required, flag } = parameter;
  const id = `parameter-${name}`;
  const hint = fieldHint(parameter);
  const marks = {
    id,
    "aria-invalid": errors.length > 0,
    "aria-describedby": `${id}-about`,
    "aria-required": required,
  };
  return (
    <div class="field">
      <div class="row">
        <label for={id}>
          <Foreign text={name} most={60} />
          {required && <span class="bad"> *</span>}
        </label>
        <span class="soft small mono">
          <Foreign text={flag} most={60} />
        </span>
      </div>
      <FieldInput parameter={parameter} text={text} marks={marks} onChange={onChange} />
      <div id={`${id}-about`} class="stack tight">
        {(description !== "" || hint !== "") && (
          <span class="hint">
            <Foreign text={[description, hint].filter((part) => part !== "").join(" · ")} most={400} />
          </span>
        )}
        {isHidden && text === "" && <HiddenValue />}
        {errors.map((message) => (
          <span key={message} class="wrong">
            <Foreign text={message} most={400} />
          </span>
        ))}
      </div>
    </div>
  );
}

function HiddenValue(): JSX.Element {
  return <span class="wrong">The earlier value is a secret and was hidden. Type it again.</span>;
}

type Marks = {
  readonly id: string;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby": string;
  readonly "aria-required": boolean;
};

function FieldInput({
  parameter,
  text,
  marks,
  onChange,
}: Omit<FieldProps, "errors" | "isHidden"> & { readonly marks: Marks }): JSX.Element {
  switch (fieldKind(parameter)) {
    case "choice":
      return (
        <select {...marks} value={text} onChange={(event) => onChange(event.currentTarget.value)}>
          {(!parameter.required || text === "") && <option value="">–</option>}
          {parameter.validation?.enum?.map((value) => {
            const word = typeof value === "string" ? value : JSON.stringify(value);
            return (
              <option key={word} value={word}>
                {word}
              </option>
            );
          })}
        </select>
      );
    case "switch":
      return (
        <span class="row">
          <input
            {...marks}
            type="checkbox"
            checked={text === "true"}
            onChange={(event) => onChange(event.currentTarget.checked ? "true" : "")}
          />
          <span class="soft small">{text === "true" ? "yes" : "no"}</span>
        </span>
      );
    case "lines":
    case "json":
      return (
        <textarea
          {...marks}
          rows={3}
          spellcheck={false}
          value={text}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "number":
      return (
        <input
          {...marks}
          type="text"
          inputMode="decimal"
          value={text}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "text":
      return (
        <input {...marks} type="text" value={text} onInput={(event) => onChange(event.currentTarget.value)} />
      );
  }
}

export function FreeRows({
  rows,
  hidden,
  onChange,
}: {
  readonly rows: readonly FreeRow[];
  /** Names of those whose value was hidden. */
  readonly hidden: ReadonlySet<string>;
  readonly onChange: (rows: readonly FreeRow[]) => void;
}): JSX.Element {
  const set = (at: number, part: Partial<FreeRow>) =>
    onChange(rows.map((row, place) => (place === at ? { ...row, ...part } : row)));
  return (
    <fieldset class="field">
      <legend class="label">Other arguments</legend>
      <span class="hint">This agent takes any argument. Write a name and its value.</span>
      {rows.map((row, at) => (
        <div key={at} class="row pairs">
          <input
            type="text"
            aria-label={`Name of argument ${at + 1}`}
            value={row.name}
            onInput={(event) => set(at, { name: event.currentTarget.value })}
          />
          <input
            type="text"
            aria-label={`Value of argument ${at + 1}`}
            value={row.value}
            onInput={(event) => set(at, { value: event.currentTarget.value })}
          />
          <button
            type="button"
            class="btn quiet small"
            aria-label={`Remove argument ${at + 1}`}
            onClick={() => onChange(rows.toSpliced(at, 1))}
          >
            Remove
          </button>
          {hidden.has(row.name) && row.value === "" && <HiddenValue />}
        </div>
      ))}
      <div>
        <button type="button" class="btn small" onClick={() => onChange([...rows, { name: "", value: "" }])}>
          Add an argument
        </button>
      </div>
    </fieldset>
  );
}

const LIMITS = [
  ["Most model answers", "turns", "numeric"],
  ["Most US dollars", "costUsd", "decimal"],
  ["Most minutes", "minutes", "decimal"],
] as const;

export function RunChoices({
  given,
  script,
  change,
}: {
  readonly given: StartChoices;
  /** The agent's own; null: it has none. */
  readonly script: string | null;
  readonly change: (part: Partial<StartChoices>) => void;
}): JSX.Element {
  const { project } = useProject();
  const models = project?.models ?? [];
  const chosen = models.find(({ name }) => name === given.model);
  return (
    <section class="card">
      <div class="card-head">
        <h2>Model and limits</h2>
      </div>
      <div class="card-body">
        <div class="columns">
          <LabelledField name="Model" {...(chosen?.why == null ? {} : { hint: chosen.why })}>
            <select
              value={given.model}
              disabled={given.script.trim() !== ""}
              onChange={(event) => change({ model: event.currentTarget.value })}
            >
              <option value="">The model of the agent</option>
              {models.map(({ name, why }) => (
                <option key={name} value={name}>
                  {name}
                  {why === null ? "" : " (not ready)"}
                </option>
              ))}
            </select>
          </LabelledField>
          <div class="field">
            <LabelledField
              name="Script in place of a model"
              hint="A file of the project that holds the answers. No model is called."
            >
              <input
                type="text"
                value={given.script}
                spellcheck={false}
                onInput={(event) => change({ script: event.currentTarget.value })}
              />
            </LabelledField>
            {script !== null && given.script !== script && (
              <div>
                <button type="button" class="btn small" onClick={() => change({ script })}>
                  Use <Foreign text={script} most={60} mono />
                </button>
              </div>
            )}
          </div>
        </div>
        <div class="columns thin">
          {LIMITS.map(([name, limit, mode]) => (
            <LabelledField key={limit} name={name}>
              <input
                type="text"
                inputMode={mode}
                value={given[limit]}
                onInput={(event) => change({ [limit]: event.currentTarget.value })}
              />
            </LabelledField>
          ))}
        </div>
        <div class="columns thin">
          <LabelledField name="Worktree">
            <select
              value={given.worktree}
              onChange={(event) =>
                change({ worktree: event.currentTarget.value as StartChoices["worktree"] })
              }
            >
              <option value="">As the agent says</option>
              <option value="yes">Work in a worktree of its own</option>
              <option value="no">Work in the project's folder</option>
            </select>
          </LabelledField>
          <LabelledField name="Permission questions">
            <select
              value={given.onPermission}
              onChange={(event) =>
                change({ onPermission: event.currentTarget.value as StartChoices["onPermission"] })
              }
            >
              <option value="">Ask here (halt)</option>
              <option value="deny">Deny without asking</option>
              <option value="allow">Allow without asking</option>
            </select>
          </LabelledField>
          <label class="row check">
            <input
              type="checkbox"
              checked={given.isDry}
              onChange={(event) => change({ isDry: event.currentTarget.checked })}
            />
            Dry run: no effects outside
          </label>
        </div>
      </div>
    </section>
  );
}
