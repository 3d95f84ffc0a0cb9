/** What storing the files of a run costs, against the question whether any of them changed. Needs git, and no server. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { heldIn } from "../src/effects/git/snapshot.ts";
import { createTree } from "../src/run/tree.ts";
import { gitFor } from "../src/run/world/worktree.ts";
import { median, row, spread, type Row } from "./measure.ts";

const FILES = 1000;

export async function measureTree(folder: string): Promise<Row> {
  const own = join(folder, "tree");
  const top = join(own, "files");
  for (let at = 0; at < FILES; at += 1) {
    const place = join(top, `d${Math.floor(at / 20)}`);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `f${at}.ts`), `export const value = ${at};\n`.repeat(40));
  }
  const git = gitFor({ env: process.env, signal: new AbortController().signal }, [top]);
  const must = async (...args: readonly string[]) => {
    const answer = await git(top, args);
    if (!answer.ok) throw new Error(`git ${args.join(" ")}: ${answer.why}`);
    return answer.out;
  };
  const as = ["-c", "user.name=Bench", "-c", "user.email=bench@localhost"];
  await must("init", "--quiet", "--initial-branch=main", top);
  await must("add", "--all");
  await must(...as, "commit", "--quiet", "--message", "Files");
  const base = (await must("rev-parse", "HEAD")).trim();
  const place = { top, index: join(own, "index"), carry: [], folder: own };
  const blobs = { put: () => Promise.resolve("stored"), get: () => Promise.resolve(null) };
  const tree = createTree({ git, run: "bench", place, blobs, base, newest: null }, await heldIn(git, place));
  const [ratios, ours, plain]: [number[], number[], number[]] = [[], [], []];
  for (let round = -2; round < 15; round += 1) {
    writeFileSync(join(top, "d7", "f150.ts"), `export const value = ${round};\n`.repeat(40));
    const from = performance.now();
    await must("status", "--porcelain");
    const between = performance.now();
    if ((await tree.snapshot()) === null) throw new Error("The files that changed were not stored.");
    const status = between - from;
    const snapshot = performance.now() - between;
    if (round < 0) continue;
    ratios.push(snapshot / status);
    ours.push(snapshot);
    plain.push(status);
  }
  const detail = `${FILES} files, one changed: p50 ${median(ours).toFixed(1)} ms against ${median(plain).toFixed(1)} ms, ${spread(ratios)}`;
  return row("storing the files of a run / git status", median(ratios), "x", 4, detail);
}
