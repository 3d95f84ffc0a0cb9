/** Stands in for `node:test` where defects are planted: tests are collected, so that those that reach a line run alone. */
type Work = (context: Context) => unknown;

interface Context {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly after: (work: () => unknown) => void;
  readonly diagnostic: (text: string) => void;
  readonly test: (...given: Given) => Promise<void>;
}

interface Options {
  readonly skip?: boolean | string;
  readonly todo?: boolean | string;
}

type Given = readonly [name: string, ...rest: (Options | Work)[]];

interface Hooks {
  readonly before: Work[];
  readonly after: Work[];
  readonly beforeEach: Work[];
  readonly afterEach: Work[];
}

interface Suite {
  readonly name: string;
  readonly above: Suite | null;
  readonly isSkipped: boolean;
  readonly hooks: Hooks;
  /** Tests and suites, in the order in which they were declared. */
  readonly items: (Suite | Case)[];
}

interface Case {
  readonly name: string;
  readonly number: number;
  readonly isSkipped: boolean;
  readonly work: Work;
}

let current: Suite = opened("", null, false);
let cases = 0;
let loading: Promise<void>[] = [];

export function test(...given: Given): Promise<void> {
  const { name, options, work } = read(given);
  const isSkipped = current.isSkipped || Boolean(options.skip) || Boolean(options.todo);
  current.items.push({ name, number: cases, isSkipped, work });
  cases += 1;
  return Promise.resolve();
}

export function describe(...given: Given): Promise<void> {
  const { name, options, work } = read(given);
  const above = current;
  const suite = opened(name, above, above.isSkipped || Boolean(options.skip));
  above.items.push(suite);
  current = suite;
  try {
    const declared = work(contextOf(name, []));
    if (declared instanceof Promise) loading.push(declared as Promise<void>);
  } finally {
    current = above;
  }
  return Promise.resolve();
}

export { test as it, describe as suite };
export default test;

export const before = (work: Work) => void current.hooks.before.push(work);
export const after = (work: Work) => void current.hooks.after.push(work);
export const beforeEach = (work: Work) => void current.hooks.beforeEach.push(work);
export const afterEach = (work: Work) => void current.hooks.afterEach.push(work);

/** The tests of a file, from the import that declares them. */
export async function collected(load: () => Promise<unknown>): Promise<Suite> {
  const suite = opened("", null, false);
  current = suite;
  cases = 0;
  loading = [];
  await load();
  await Promise.all(loading);
  return suite;
}

export interface Watch {
  readonly isChosen: (number: number) => boolean;
  readonly ended: (number: number, name: string, ms: number) => void;
}

/** Runs the chosen tests one after another; the first that fails throws, with its name. */
export async function ran(suite: Suite, watch: Watch): Promise<void> {
  const isMeant = (item: Suite | Case): boolean =>
    "items" in item ? item.items.some(isMeant) : !item.isSkipped && watch.isChosen(item.number);
  if (!isMeant(suite)) return;
  const context = contextOf(suite.name, suite.hooks.after);
  await named(suite, "before", () => inTurn(suite.hooks.before, context));
  for (const item of suite.items) {
    if (!isMeant(item)) continue;
    if ("items" in item) await ran(item, watch);
    else await ranOne(item, suite, watch);
  }
  await named(suite, "after", () => inTurn(suite.hooks.after, context));
}

async function ranOne(item: Case, suite: Suite, watch: Watch): Promise<void> {
  const took = stopwatch();
  const later: Work[] = [];
  const context = contextOf(item.name, later);
  await named(suite, item.name, async () => {
    const suites = lineage(suite);
    for (const each of suites) await inTurn(each.hooks.beforeEach, context);
    try {
      await item.work(context);
    } finally {
      await inTurn(later, context);
      for (const each of suites.toReversed()) await inTurn(each.hooks.afterEach, context);
    }
  });
  watch.ended(item.number, nameIn(suite, item.name), took());
}

/** Time of the processor, so that a busy machine does not make a test look slow; waiting counts for less. */
export function stopwatch(): () => number {
  const [began, used] = [performance.now(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(used);
    return Math.max((user + system) / 1000, (performance.now() - began) / 8);
  };
}

export class Failed extends Error {
  readonly test: string;

  constructor(name: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.test = name;
  }
}

async function named(suite: Suite, name: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw error instanceof Failed ? error : new Failed(nameIn(suite, name), error);
  }
}

async function inTurn(all: readonly Work[], context: Context): Promise<void> {
  for (const work of all) await work(context);
}

function lineage(suite: Suite): readonly Suite[] {
  return suite.above === null ? [suite] : [...lineage(suite.above), suite];
}

function nameIn(suite: Suite, name: string): string {
  return [...lineage(suite).map((each) => each.name), name].filter((each) => each !== "").join(" › ");
}

function opened(name: string, above: Suite | null, isSkipped: boolean): Suite {
  const hooks = { before: [], after: [], beforeEach: [], afterEach: [] };
  return { name, above, isSkipped, hooks, items: [] };
}

function contextOf(name: string, later: Work[]): Context {
  return {
    name,
    signal: new AbortController().signal,
    after: (work) => void later.push(work),
    diagnostic: () => {},
    test: async (...given) => {
      const { options, work } = read(given);
      if (!options.skip) await work(contextOf(given[0], later));
    },
  };
}

function read([name, ...rest]: Given): { name: string; options: Options; work: Work } {
  const options = rest.find((part) => typeof part === "object") ?? {};
  return { name, options, work: rest.find((part) => typeof part === "function") ?? (() => {}) };
}
