import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createRounds, type RoundsOptions } from "../../../src/journal/postgres/rounds.ts";

type Write = { readonly run: string; readonly n: number };

/** Rounds whose end is in the hands of the test. */
function held(options: RoundsOptions) {
  const begun: { readonly writes: readonly Write[]; readonly end: (error?: Error) => void }[] = [];
  const rounds = createRounds<Write>(
    (writes) =>
      new Promise((resolve, reject) => {
        const outcomes = writes.map(({ n }) => (n < 0 ? { error: new Error(`no ${n}`) } : { value: n }));
        begun.push({ writes, end: (error) => (error === undefined ? resolve(outcomes) : reject(error)) });
      }),
    options,
    ({ run }) => run,
  );
  const sizes = () => begun.map(({ writes }) => writes.length);
  return { rounds, begun, sizes };
}

const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
const writesOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, place): Write => ({ run: `r${from + place}`, n: from + place }));

describe("rounds", () => {
  test("what is offered in one turn goes together, as many as a round holds", async () => {
    for (const [most, abreast, offered, first] of [
      [10, 1, 3, [3]],
      [10, 1, 25, [10]],
      [10, 2, 19, [10]],
      [10, 2, 20, [10, 10]],
      [10, 2, 45, [10, 10]],
      [10, 3, 45, [10, 10, 10]],
    ] as const) {
      const { rounds, begun, sizes } = held({ most, abreast });
      const all = Promise.all(writesOf(0, offered).map(rounds.offer));
      await turn();
      assert.deepEqual(sizes(), first, `${offered} offers, ${most} a round, ${abreast} abreast`);
      for (let at = 0; at < begun.length; at += 1) {
        begun[at]!.end();
        await turn();
      }
      assert.deepEqual(
        await all,
        writesOf(0, offered).map(({ n }) => n),
      );
    }
  });

  test("another round is begun beside the first only when it is full", async () => {
    const { rounds, begun, sizes } = held({ most: 4, abreast: 2 });
    const first = rounds.offer({ run: "a", n: 1 });
    await turn();
    const some = writesOf(0, 3).map(rounds.offer);
    await turn();
    assert.deepEqual(sizes(), [1], "three wait for the end of the first");
    some.push(rounds.offer({ run: "b", n: 2 }));
    await turn();
    assert.deepEqual(sizes(), [1, 4]);
    for (const { end } of begun) end();
    await Promise.all([first, ...some]);
  });

  test("writes of one run are never under way together, and keep their order", async () => {
    const { rounds, begun } = held({ most: 2, abreast: 3 });
    const offers = [
      { run: "a", n: 1 },
      { run: "a", n: 2 },
      { run: "b", n: 3 },
      { run: "a", n: 4 },
      { run: "b", n: 5 },
      { run: "c", n: 6 },
    ].map(rounds.offer);
    const seen: number[] = [];
    for (let at = 0; seen.length < 6; at += 1) {
      await turn();
      const open = begun.slice(at).flatMap(({ writes }) => writes.map(({ run }) => run));
      assert.equal(new Set(open).size, open.length, `two of one run at once: ${open.join()}`);
      seen.push(...begun[at]!.writes.map(({ n }) => n));
      begun[at]!.end();
    }
    await Promise.all(offers);
    assert.deepEqual(
      seen.filter((n) => [1, 2, 4].includes(n)),
      [1, 2, 4],
    );
    assert.deepEqual(
      seen.filter((n) => [3, 5].includes(n)),
      [3, 5],
    );
  });

  test("one that is refused leaves the others, and a round that fails frees its runs", async () => {
    const { rounds, begun } = held({ most: 10, abreast: 1 });
    const refused = rounds.offer({ run: "a", n: -1 });
    const fine = rounds.offer({ run: "b", n: 1 });
    await turn();
    begun[0]!.end();
    await assert.rejects(refused, /no -1/);
    assert.equal(await fine, 1);
    const lost = rounds.offer({ run: "a", n: 2 });
    const next = rounds.offer({ run: "a", n: 3 });
    await turn();
    begun[1]!.end(new Error("away"));
    await assert.rejects(lost, /away/);
    await turn();
    begun[2]!.end();
    assert.equal(await next, 3);
  });

  test("it is settled when nothing is under way any more, also what was offered in the meantime", async () => {
    const { rounds, begun } = held({ most: 1, abreast: 2 });
    await rounds.settled();
    const offers = writesOf(0, 3).map(rounds.offer);
    let isSettled = false;
    const settled = rounds.settled().then(() => (isSettled = true));
    for (let at = 0; at < 3; at += 1) {
      await turn();
      assert.equal(isSettled, false);
      begun[at]!.end();
    }
    await Promise.all([settled, ...offers]);
  });
});
