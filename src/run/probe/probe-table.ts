/** What a probe is: one protection, tried on this machine, and what came of it. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Flow } from "../../flow/flow.ts";
import type { SandboxReport, Surroundings } from "../boundary.ts";
import type { SandboxGround } from "../world/sandbox.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type Probe = {
  readonly limit: string;
  /** advisory: nothing would stop it, or it cannot be tried here. */
  readonly state: "enforced" | "advisory";
  readonly why: string;
};

export type ProbeGroup = { readonly title: string; readonly probes: readonly Probe[] };

/** What came of one attempt. */
export type ProbeRow = Pick<Probe, "state" | "why">;

/** What attempts are made with. */
export type ProbeScene = {
  readonly flow: Flow;
  readonly around: Surroundings;
  readonly sandbox: SandboxReport;
  /** null: the sandbox must be there and cannot be opened. */
  readonly ground: SandboxGround | null;
};

/** One protection and how it is tried. Where an attempt succeeds it does no harm, and what it made is removed again. */
export type Trial = {
  readonly limit: string;
  readonly attempt: (scene: ProbeScene) => ProbeRow | Promise<ProbeRow>;
};

/** One after the other: what one of them makes is gone before the next one begins. */
export async function tryAll(trials: readonly Trial[], scene: ProbeScene): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  for (const { limit, attempt } of trials) probes.push({ limit, ...(await tryOne(attempt, scene)) });
  return probes;
}

async function tryOne(attempt: Trial["attempt"], scene: ProbeScene): Promise<ProbeRow> {
  try {
    return await attempt(scene);
  } catch (error) {
    return untried(errorText(error));
  }
}

export function enforced(why: string): ProbeRow {
  return { state: "enforced", why };
}

export function advisory(why: string): ProbeRow {
  return { state: "advisory", why };
}

/** Nothing is promised of what was not tried. */
export function untried(why: string): ProbeRow {
  return advisory(`not tried: ${why}`);
}

/** `through`: what got through, in words; empty: the protection holds. */
export function judgedRow(through: readonly string[], held: string): ProbeRow {
  return through.length === 0 ? enforced(held) : advisory(`got through: ${through.join("; ")}`);
}

/** A name that is not in use. */
export function newName(): string {
  return `lockstep-probe-${randomUUID().slice(0, 8)}`;
}

/** An empty folder outside of the project, removed when it is disposed of. */
export function scratchFolder(): Disposable & { readonly path: string } {
  const path = realpathSync.native(mkdtempSync(join(tmpdir(), "lockstep-probe-")));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
