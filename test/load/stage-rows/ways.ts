/** Rows about what follows a stage. */
import { AROUND, NEXT_HOOK, build, forked, plan, type Row } from "./row.ts";

const badNext = (name: string, next: unknown, ...found: readonly string[]): Row => [
  name,
  { ...AROUND, plan: { next } },
  found,
];
export const WAYS: readonly Row[] = [
  badNext("to an unknown stage", "d", plan("/next", "StageTargetUnknown")),
  badNext("a number", 3, plan("/next", "StageDefinitionInvalid")),
  badNext("none of the forms", { then: "a" }, plan("/next", "StageDefinitionInvalid")),
  badNext("an unknown sibling", { parallel: ["a", "d"] }, plan("/next/parallel/1", "StageTargetUnknown")),
  badNext("one sibling", { parallel: ["a"] }, plan("/next/parallel", "InvalidParallelPlan")),
  badNext("no sibling", { parallel: [] }, plan("/next/parallel", "InvalidParallelPlan")),
  badNext(
    "a sibling twice",
    { parallel: ["a", "a"] },
    plan("/next/parallel", "InvalidParallelPlan"),
    plan("/next/parallel/1", "StageDefinitionInvalid"),
  ),
  badNext(
    "a join among the siblings",
    { parallel: ["a", "b"], join: "b" },
    plan("/next/join", "StageDefinitionInvalid"),
  ),
  badNext("an unknown join", { parallel: ["a", "b"], join: "d" }, plan("/next/join", "StageJoinDangling")),
  badNext(
    "a join at the end",
    { parallel: ["a", "b"], join: "end" },
    plan("/next/join", "StageJoinDangling"),
  ),
  badNext(
    "an unknown policy",
    { parallel: ["a", "b"], policy: "lazy" },
    plan("/next/policy", "StageDefinitionInvalid"),
  ),
  badNext(
    "a misspelled key",
    { parallel: ["a", "b"], jion: "c" },
    plan("/next/jion", "UNKNOWN-KEY", "warning"),
  ),
  badNext(
    "a join that is not listed",
    { execution: "parallel", nextStages: ["a", "b"], join: "c" },
    plan("/next/join", "StageJoinDangling"),
  ),
  badNext(
    "only the join beside one stage",
    { execution: "parallel", nextStages: ["a", "c"], join: "c" },
    plan("/next/nextStages", "InvalidParallelPlan"),
  ),
  badNext(
    "several stages one after the other",
    { execution: "sequential", nextStages: ["a", "b"] },
    plan("/next/nextStages", "StageDefinitionInvalid"),
  ),
  badNext(
    "a join without anything side by side",
    { execution: "sequential", nextStages: ["a"], join: "b" },
    plan("/next/join", "StageDefinitionInvalid"),
  ),
  badNext(
    "a NextResult without execution",
    { nextStages: ["a"] },
    plan("/next/execution", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch on nothing",
    { switch: "a b", cases: { x: "a" } },
    plan("/next/switch", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch beside the result",
    { switch: "approved", cases: { x: "a" } },
    plan("/next/switch", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch without cases",
    { switch: "parsed.summary" },
    plan("/next/cases", "StageDefinitionInvalid"),
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a switch with empty cases",
    { switch: "parsed.summary", cases: {} },
    plan("/next/cases", "StageDefinitionInvalid"),
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a case to an unknown stage",
    { switch: "parsed.summary", cases: { x: "d", default: "a" } },
    plan("/next/cases/x", "StageTargetUnknown"),
  ),
  badNext(
    "a switch without default",
    { switch: "parsed.summary", cases: { x: "a" } },
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a switch on a field that is not named",
    { switch: "parsed.sumary", cases: { x: "a", default: "b" } },
    plan("/next/switch", "GATE-FIELD", "warning"),
  ),
  [
    "a switch on a value that the schema does not allow",
    {
      build: { next: { switch: "parsed.green", cases: { true: "review", yes: "review", default: "plan" } } },
    },
    [build("/next/cases/yes", "TRANS-UNUSED", "warning")],
  ],
  ["onFail to a stage", { build: { onFail: "mend" }, mend: { id: "mend" } }, []],
  ["onFail to an unknown stage", { build: { onFail: "mend" } }, [build("/onFail", "StageTargetUnknown")]],
  ["onFail to the end", { build: { onFail: "end" } }, [build("/onFail", "StageTargetUnknown")]],
  [
    "onFail to where next leads",
    { plan: { onFail: "build" } },
    [
      plan("/onFail", "STAGE-CAP-SUCCESS", "warning"),
      "warning StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary",
    ].toReversed(),
  ],
  [
    "a sibling that leads on",
    { ...forked, a: { next: "review" } },
    ["error StageDefinitionInvalid stages/a.md /next"],
  ],
  [
    "a sibling that fans out",
    { ...forked, a: { next: { parallel: ["c", "d"] } }, c: { id: "c" }, d: { id: "d" } },
    ["error StageDefinitionInvalid stages/a.md /next"],
  ],
  [
    "a sibling whose failure leads to a terminal stage",
    { ...forked, a: { onFail: "mend" }, mend: { id: "mend" } },
    [],
  ],
  [
    "a sibling whose failure leads on",
    { ...forked, a: { onFail: "mend" }, mend: { id: "mend", next: "review" } },
    ["error StageDefinitionInvalid stages/a.md /onFail"],
  ],
  [
    "a stage that nothing leads to",
    { lost: { id: "lost" } },
    ["warning FLOW-UNREACHABLE stages/lost.md /id"],
  ],
  ["a stage that code may lead to", { lost: { id: "lost" }, ...NEXT_HOOK }, []],
  ["a circle without a way out", { review: { next: "plan" } }, [plan("/next", "FLOW-CYCLE")]],
  ["a circle through a join", { ...forked, review: { next: "plan" } }, [plan("/next", "FLOW-CYCLE")]],
  [
    "a circle that only failure leaves",
    { review: { next: "plan", onFail: "mend" }, mend: { id: "mend" } },
    [plan("/next", "FLOW-CYCLE")],
  ],
  [
    "a stage that leads to itself",
    { review: { next: "review" } },
    ["error FLOW-CYCLE stages/review.md /next"],
  ],
  [
    "siblings without a join end the run",
    { ...forked, plan: { next: { parallel: ["a", "b"] } }, review: undefined },
    [],
  ],
];
