/** Why a test did not go as expected, as far as the run shows it: what the test left open, and how the run ended. */
import type { FlowTest } from "../flow/flow-test.ts";
import type { Unmet } from "./expect.ts";
import { isOnPath } from "./expect.ts";
import type { Leg, Outcomes } from "./observe.ts";

/** Expectations about the way that a run goes. */
const ABOUT_THE_WAY = new Set([
  "outcome",
  "code",
  "exit",
  "final",
  "path",
  "visits",
  "checks",
  "script",
  "turns",
]);

export function reasonsFor(
  test: FlowTest,
  { observed, moments }: Outcomes,
  unmet: readonly Unmet[],
): readonly string[] {
  const keys = new Set(unmet.map(({ key }) => key));
  const isAboutTheWay = [...keys].some((key) => ABOUT_THE_WAY.has(key));
  const events = moments.map(({ entry }) => entry.event);
  const reasons: string[] = [];
  if (isAboutTheWay) {
    const checked = events.flatMap((event) => (event.type === "step.checked" ? event.results : []));
    const passed = new Set(checked.filter(({ ok }) => ok).map(({ name }) => name));
    for (const name of test.ground.kind === "memory" ? passed : [])
      if (!Object.hasOwn(test.around.checks, name))
        reasons.push(`${name} passed: the test gives no result for it, and then it passes`);
    for (const { name, ok, summary } of checked)
      if (!ok && summary !== "") reasons.push(`${name} failed: ${summary}`);
    const { code, outcome, reason } = observed;
    if (code === "SCRIPT_EXHAUSTED")
      reasons.push("the run asked the model more often than the script has responses");
    else if (keys.has("outcome") && typeof reason === "string" && reason !== "")
      reasons.push(`the run ended as ${outcome as string}: ${reason}`);
  }
  if (keys.has("asked") || isAboutTheWay)
    if (events.some(({ type }) => type === "step.asked") && test.around.answers.length === 0)
      reasons.push("a person was asked, and the test gives no answers: then no one is there");
  if (keys.has("calls"))
    for (const { deeds } of moments)
      for (const deed of deeds)
        if (deed.kind === "called")
          for (const { name, denied } of deed.results)
            if (denied !== undefined) reasons.push(`${name} was denied: ${denied}`);
  return [...new Set(reasons)];
}

/** The visit to look at, as `why` takes it: where the path first differs. null: the last decision says it. */
export function visitToLookAt(path: readonly Leg[], unmet: readonly Unmet[]): string | null {
  const expected = unmet.find(({ key }) => key === "path")?.expected;
  if (!Array.isArray(expected)) return null;
  for (const item of expected as readonly unknown[]) {
    if (typeof item !== "string" || item === "..." || item.startsWith("re:")) continue;
    if (path.some(({ text }) => isOnPath(item, text))) continue;
    const there = path.findLast(({ step }) => step === item.split(" ", 1)[0]);
    if (there !== undefined) return `${there.step}@${there.visit}`;
  }
  return null;
}
