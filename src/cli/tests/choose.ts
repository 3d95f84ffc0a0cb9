/** Which of the tests that were read are run: by name, by `only`, by what failed last, by shard. */
import type { FlowTest } from "../../flow/flow-test.ts";
import { RunnerError } from "../../run/errors.ts";
import { isSameTest, type TestKey } from "../../run/records/test-runs.ts";
import { UsageError } from "../args.ts";
import { isOn } from "../screen.ts";
import { shownInLine } from "../text/text.ts";
import type { AgentUnderTest } from "./read.ts";

/** A test that is to be run. */
export type ChosenTest = { readonly of: AgentUnderTest; readonly test: FlowTest };

export type ChosenBy = {
  /** A regular expression for names; upper and lower case are the same. */
  readonly pattern: string | undefined;
  /** null: whether a test failed last is not asked. */
  readonly failed: readonly TestKey[] | null;
  /** `2/3`. */
  readonly shard: string | undefined;
};

export function chooseTests(agents: readonly AgentUnderTest[], by: ChosenBy): readonly ChosenTest[] {
  const isNamed = namedBy("test", by.pattern);
  const isInShard = inShard(by.shard);
  const all = agents.flatMap((of) => of.tests.map((test): ChosenTest => ({ of, test })));
  const only = all.filter(({ test }) => test.only);
  return (only.length > 0 ? only : all)
    .filter(({ test }) => isNamed(test.name))
    .filter((one) => by.failed === null || by.failed.some((key) => isSameTest(key, testKeyOf(one))))
    .filter((_, at) => isInShard(at));
}

export function testKeyOf({ of: { agent }, test: { file, name } }: ChosenTest): TestKey {
  return { agent, file, name };
}

/** `flag`: the one that the pattern was given with. */
export function namedBy(flag: string, pattern: string | undefined): (name: string) => boolean {
  if (pattern === undefined) return () => true;
  try {
    const wanted = new RegExp(pattern, "i");
    return (name) => wanted.test(name);
  } catch {
    throw new UsageError(`--${flag} "${pattern}" is not a valid regular expression.`);
  }
}

function inShard(shard: string | undefined): (at: number) => boolean {
  if (shard === undefined) return () => true;
  const [, one, all] = /^(\d+)\/(\d+)$/.exec(shard) ?? [];
  const [part, parts] = [Number(one), Number(all)];
  if (!(part >= 1 && part <= parts))
    throw new UsageError(`--shard "${shard}" is not valid: write it as 1/3, the first of three parts.`);
  return (at) => at % parts === part - 1;
}

export function isCi(env: NodeJS.ProcessEnv): boolean {
  return isOn(env.CI);
}

/** A test that is marked so by mistake would switch off all others without a word. */
export function refuseOnlyInCi(agents: readonly AgentUnderTest[], env: NodeJS.ProcessEnv): void {
  const marked = isCi(env) ? agents.flatMap(({ tests }) => tests).find(({ only }) => only) : undefined;
  if (marked === undefined) return;
  throw new RunnerError(
    "USAGE",
    `${marked.file}:${marked.line}: the test "${shownInLine(marked.name)}" says only: true, which is refused in CI because no other test would run. Remove it.`,
  );
}
