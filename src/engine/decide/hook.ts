/** What the project's code gave at one point of a visit; where it gives nothing, what is declared holds. */
import type { HookName, HookResult } from "../../flow/event.ts";
import { lifecycleEndings } from "../../flow/text/endings.ts";
import { declaredAssert, hookedAssert } from "./checking.ts";
import { afterExit, breakOff, depart, hookedNext } from "./leaving.ts";
import { afterSetup, declaredGate, hookedGate } from "./opening.ts";
import type { State } from "./state.ts";
import { suspend, type Here } from "./visit.ts";

export function hooked(here: Here, hook: HookName, result: HookResult): State {
  // Not the code that the run began with, so it was not run.
  if (result.kind === "threw" && result.code === "MODULE_CHANGED")
    return suspend(here, result.code, `${result.message} Put it back, and resume the run.`);
  if (result.kind === "threw")
    return breakOff(here, lifecycleEndings.hookThrew(here.step.id, hook, result.code, result.message));
  const value = result.kind === "gave" && result.value !== null ? result.value : undefined;
  switch (hook) {
    case "setup":
      return afterSetup(here, value);
    case "checkGate":
      return value === undefined ? declaredGate(here) : hookedGate(here, value);
    case "assert":
      return value === undefined ? declaredAssert(here) : hookedAssert(here, value);
    case "exit":
      return afterExit(here, value);
    case "next":
      return value === undefined ? depart(here) : hookedNext(here, value);
  }
}
