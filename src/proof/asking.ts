/** Whether the step that is next can be asked at all: a prompt may read a value that no step has handed on this way. */
import type { State } from "../engine/decide/state.ts";
import { sayAll } from "../engine/drive/talk.ts";
import type { Command } from "../flow/command.ts";
import type { Reply } from "../flow/event.ts";
import { cached } from "../flow/cached.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { readsOf } from "../flow/reads.ts";
import { composer } from "../prompts/compose.ts";

export type Unaskable = Reply & { readonly kind: "unaskable" };

/** The command that is done next: siblings take their turns in declared order. */
export function nextCommand({ pending }: State): Command | undefined {
  return pending[0]?.type === "act" ? pending[1] : pending[0];
}

/** null: it can be asked, or something else than asking is next. */
export function unaskableIn(flow: Flow, state: State): Unaskable | null {
  const known = troubles.get(state);
  if (known !== undefined) return known;
  const command = nextCommand(state);
  const step = command?.type === "ask" ? flow.steps[command.step] : undefined;
  const said =
    command?.type !== "ask" || step === undefined || step.by.kind === "command"
      ? null
      : sayAll(flow, state, step, command.say, { compose: composer });
  const trouble = said?.kind === "unaskable" ? said : null;
  troubles.set(state, trouble);
  return trouble;
}

/** What prompts read of what steps hand on, where nothing else stands in for it. */
export const neededIn = cached((flow: Flow): readonly { readonly step: StepId; readonly key: string }[] => {
  const found = Object.values(flow.steps).flatMap((step) =>
    readsOf(flow, step).flatMap(({ name, supplier }) => {
      if (supplier?.kind !== "input" && supplier?.kind !== "handoff") return [];
      if (step.needs.some(({ variable, default: usual }) => variable === name && usual !== undefined))
        return [];
      return [{ step: supplier.step, key: supplier.key }];
    }),
  );
  const names = found.map(({ step, key }) => `${step} ${key}`);
  return found.filter((_, at) => names.indexOf(names[at]!) === at);
});

/** Which of these values there are. */
export function handedKey(flow: Flow, { handoff }: State): string {
  const isThere = (step: StepId, key: string) => own(own(handoff, step) ?? {}, key) !== undefined;
  return neededIn(flow)
    .map(({ step, key }) => (isThere(step, key) ? "+" : "-"))
    .join("");
}

/** Each state is looked at for its key, for what can happen next, and for each of these. */
const troubles = new WeakMap<State, Unaskable | null>();
