import assert from "node:assert/strict";
import { test } from "node:test";
import { mendAll, type Mending } from "../../src/load/mend.ts";
import { tree001, tree002 } from "./documents.ts";
import { mutateText, mutateValue } from "./mutate.ts";
import { filesOf, load, tree, type Tree } from "./world.ts";
import { random } from "./random.ts";

const ROUNDS = 100_000;
/** Of so many one is mended too. */
const SAMPLE = 100;
const SEED = 20_260_320;

/** One agent of each dialect. */
const AGENTS: readonly { readonly name: string; readonly good: Tree }[] = [
  { name: "iterator", good: tree() },
  { name: "code-improver", good: tree001() },
  { name: "issues", good: tree002() },
];

test(`${ROUNDS} mutations of the good files: never an exception, every problem in full`, async () => {
  const next = random(SEED);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  let found = 0;
  let mended = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { name, good } = AGENTS[round % AGENTS.length]!;
    const json = Object.keys(good).filter((file) => file.endsWith(".json"));
    const changed: { [file: string]: string } = { ...good };
    for (let times = 1 + Math.floor(next() * 3); times > 0; times--) {
      const file = pick(json);
      const text = changed[file]!;
      changed[file] = next() < 0.15 ? mutateText(text, next) : mutateValue(text, next, pick);
    }
    if (next() < 0.1) delete changed[pick(Object.keys(good))];
    found += check(name, changed, round);
    if (round % SAMPLE === 0) mended += await checkMending(name, changed, round);
  }
  assert.ok(found > ROUNDS, `only ${found} problems`);
  assert.ok(mended > ROUNDS / SAMPLE / 10, `only ${mended} mended`);
});

/** Whatever is mended is still JSON, nothing is mended twice, and a second time nothing is left to do. */
async function checkMending(name: string, files: Tree, round: number): Promise<number> {
  const { changes, texts } = await mend(name, files);
  for (const [file, text] of texts) {
    assert.doesNotThrow(
      () => JSON.parse(text.replace(/^\uFEFF/, "")) as unknown,
      `round ${round}: ${file}\n${text}`,
    );
  }
  const again = await mend(name, { ...files, ...Object.fromEntries(texts) });
  assert.deepEqual(again.changes, [], `round ${round}`);
  return changes.length;
}

async function mend(name: string, files: Tree): Promise<Mending> {
  const paths = Object.keys(files);
  return await mendAll(filesOf(files), ({ read }) => {
    const texts = paths.flatMap((path) => {
      const found = read(path);
      return found.kind === "text" ? [[path, found.text] as const] : [];
    });
    return Promise.resolve(load(Object.fromEntries(texts), name).problems);
  });
}

function check(name: string, files: Tree, round: number): number {
  const { flow, problems } = load(files, name);
  for (const problem of problems) {
    const { code, file, message, fix, why, pointer, line, column } = problem;
    const isFull = code !== "" && file !== "" && message !== "" && fix !== "" && why !== "";
    const isPlaced = (pointer === "" || pointer.startsWith("/")) && line >= 1 && column >= 1;
    if (!isFull || !isPlaced) assert.fail(`round ${round}: ${JSON.stringify(problem)}`);
  }
  if (flow === null)
    assert.ok(
      problems.some((problem) => problem.severity === "error"),
      `round ${round}: no flow and no error`,
    );
  else {
    if (round % SAMPLE === 0) JSON.stringify(flow);
    const isSound = problems.every((problem) => problem.severity !== "error");
    if (isSound) assert.ok(Object.hasOwn(flow.steps, flow.entry), `round ${round}: no error, yet no entry`);
  }
  return problems.length;
}
