/** The tools of a test in memory: the gate, people and hooks decide as in a run; what a tool gives is a table. */
import { createGrantedCalls, type Granting } from "../boundaries/gate/grants.ts";
import { judge } from "../boundaries/gate/gate.ts";
import { permissionFor, permissionWish, userWish, type Permitting } from "../boundaries/gate/permissions.ts";
import { grantedBy, offerOf, refusalFor } from "../boundaries/tools/toolbox.ts";
import type { Approved, Toolbox } from "../engine/ports.ts";
import type { Call, CallResult } from "../flow/event.ts";
import type { Around } from "../flow/flow-test.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { rulingOn } from "../flow/question.ts";
import { inOrder } from "./in-order.ts";

/** `granting`: who may allow what the step's list or mode does not. */
export function testToolbox(
  { settings: { questions } }: Pick<Flow, "settings">,
  { tools }: Around,
  granting: Omit<Granting, "cwd">,
): Toolbox {
  const given = inOrder(tools, () => 0);
  const permitting: Permitting = { person: granting.person, asksUser: questions?.askUser === "person" };
  const offer = offerOf(granting.person, true);
  const settled = (step: Step, one: Call, index: number, batch: readonly string[], approved: Approved) => {
    const { id, name, input } = one;
    const judgement = judge(step, { name, input }, batch);
    const permission = permissionFor(one, index, judgement, approved, permitting);
    if (!judgement.allow && permission.kind !== "allowed") {
      const why = refusalFor(step, one, judgement.reason, permission);
      return grantedBy(one, permission, { id, name, ok: false, content: why, denied: why });
    }
    const told = name === "AskUserQuestion" ? rulingOn(approved.ruled, index)?.answer : undefined;
    const { ok, content } =
      told == null ? (given(name) ?? { ok: true, content: `${name} done` }) : { ok: true, content: told };
    return grantedBy(one, permission, { id, name, ok, content });
  };
  const call: Toolbox["call"] = (step, batch, _signal, approved = NOTHING) => {
    const names = batch.map(({ name }) => name);
    return Promise.resolve(batch.map((one, index): CallResult => settled(step, one, index, names, approved)));
  };
  return {
    offer,
    judge: (step, one, batch, allowed = []) => {
      const judgement = judge(step, one, batch);
      const { kind } = permissionFor(one, 0, judgement, { ruled: [], allowed }, permitting);
      return judgement.allow || kind === "allowed" ? null : judgement.reason;
    },
    wish: (step, batch, approved) => {
      if (!permitting.person.isReachable) return null;
      const names = batch.map(({ name }) => name);
      for (const [index, one] of batch.entries()) {
        const judgement = judge(step, one, names);
        const { kind } = permissionFor(one, index, judgement, approved, permitting);
        if (kind === "ask") return permissionWish(step, one, index);
        if (!judgement.allow || rulingOn(approved.ruled, index) !== undefined) continue;
        const wish = userWish(one, index, permitting);
        if (wish !== null) return wish;
      }
      return null;
    },
    call,
    callGranted: createGrantedCalls({ offer, call }, { ...granting, cwd: "/" }),
  };
}

const NOTHING: Approved = { ruled: [], allowed: [] };
