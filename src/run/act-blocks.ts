/** Carries out the action blocks of settled visits. */
import { createGround } from "../boundaries/gate/paths.ts";
import { actsOf, type ActionRequest, type ActionSurroundings } from "../effects/actions/actions.ts";
import { createLedger, type Act } from "../effects/actions/ledger.ts";
import type { ModuleHost } from "../effects/modules/module-host.ts";
import { REFUSED, type Effect } from "../story/report.ts";
import type { Block } from "../flow/action-blocks.ts";
import { isRepeatable, type BlocksDue } from "../flow/due.ts";
import type { EffectEvent } from "../flow/event.ts";
import { own, type JsonObject } from "../flow/json.ts";
import type { Actions } from "../flow/settings.ts";
import type { Outside } from "./act.ts";
import { githubFor } from "./world/github.ts";
import { openHost } from "./world/ports.ts";
import { guardedIn } from "./world/own-files.ts";
import { loadedModules } from "./world/own-modules.ts";

type RecordEffect = (event: EffectEvent) => Promise<void>;

export type Blocks = {
  /** false: it was interrupted. A block that fails does not keep the run from going on. */
  readonly carryOut: (due: BlocksDue, args: JsonObject, record: RecordEffect) => Promise<boolean>;
  readonly close: () => Promise<void>;
};

export function createBlocks(outside: Outside): Blocks {
  const { began, run, flow, cwd, worktree, project, report, redactor, signal } = outside;
  const { effects } = report;
  const ground = createGround(cwd, [], () =>
    guardedIn({ cwd, ...project }, outside.env, loadedModules(began, project.root)),
  );
  const hosts = createHosts(outside);
  // Whether it is switched on is looked at for each block, by the settings that held then.
  const home = worktree?.home ?? cwd;
  const github = githubFor({ ...outside, cwd: home, enabled: true, onToken: redactor.learn });
  /** Acts that failed in this stretch, by how often; and those of them that trying again may help. */
  const tries = new Map<string, number>();
  const passing = new Set<string>();
  const hear = (key: string) => void passing.add(key);
  const base = { ...ground, tidy: redactor.text, run, agent: flow.agent, cwd, github, signal, passing: hear };

  return {
    carryOut: async (due, args, record) => {
      const host = (type: string) => hosts.of(due.settings.actions, type);
      const world = { ...base, ...due, args, host };
      for (const [index, block] of due.blocks.entries()) {
        await carryOut(block, due, index, world, record);
        if (signal.aborted) return false;
      }
      return true;
    },
    close: hosts.close,
  };

  async function carryOut(
    block: Block,
    { step, visit, last }: BlocksDue,
    index: number,
    world: ActionSurroundings,
    record: RecordEffect,
  ): Promise<void> {
    const at = `${step}@${visit}`;
    const key = `action/${at}/${index}`;
    const before = effects.get(key);
    if (before !== undefined && before.state !== "intended" && !mayRepeat(before)) return;
    const past = (one: string) => effects.get(one) ?? null;
    const asked: ActionRequest =
      block.kind === "refused"
        ? { ok: false, why: block.why }
        : await actsOf(block.action, { key, step, visit, index, past }, world);
    if (!asked.ok) {
      const detail = `${at}: ${asked.why}`;
      await record({ type: "effect.held", key, kind: REFUSED, target: at, detail });
      return;
    }
    for (const act of asked.acts) {
      if (act.last === true && last !== true) return;
      if (!(await perform(act, record))) return;
    }
  }

  /** false: what comes after it in the same block has to wait for it. */
  async function perform(act: Act, record: RecordEffect): Promise<boolean> {
    const { key } = act;
    const before = effects.get(key);
    const tried = tries.get(key) ?? 0;
    if (before?.state === "failed") {
      const mayHelp = tried === 0 || (passing.has(key) && tried < MOST_TRIES);
      if (!mayRepeat(before) || !mayHelp) return false;
    }
    passing.delete(key);
    // What only writes to the log is done in a dry run too.
    const dryRun = report.dryRun && !LOGGED.has(act.kind);
    const done = await createLedger({ past: effects, record, dryRun, signal }).act(act);
    if (!done) tries.set(key, tried + 1);
    return done;
  }
}

const MOST_TRIES = 3;
const LOGGED: ReadonlySet<string> = new Set(["action:log", "action:completion-signal"]);

function mayRepeat({ kind, state }: Effect): boolean {
  return state === "failed" && isRepeatable(kind);
}

// What is opened when it is needed first.

function createHosts({ project: { root }, cwd, env, options: { hookTimeoutMs }, around }: Outside) {
  const hosts = new Map<string, Promise<ModuleHost>>();
  return {
    of: async ({ modules = {} }: Actions, type: string): Promise<ModuleHost> => {
      const { file, digest } = own(modules, type)!;
      const open = () => openHost({ file, digest }, { root, cwd, env, child: around.child, hookTimeoutMs });
      const known = hosts.get(`${digest} ${file}`) ?? open();
      hosts.set(`${digest} ${file}`, known);
      return await known;
    },
    close: async () => {
      for (const host of hosts.values()) await (await host).close();
    },
  };
}
