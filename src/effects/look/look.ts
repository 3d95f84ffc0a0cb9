/** Looking at what is outside of a run: whether a file, an address, GitHub or a module of the project says that it is done. */
import { join } from "node:path";
import type { OutsideRule, Watch } from "../../engine/ports.ts";
import type { Sight } from "../../flow/event.ts";
import type { Resource } from "../../flow/flow.ts";
import type { JsonObject } from "../../flow/json.ts";
import { clipCaptured } from "../process/capture.ts";
import type { GithubClient, GithubOutcome } from "../github/github.ts";
import type { Grounded } from "../../flow/machine/ground.ts";
import type { ModuleHost, ModuleHostOptions } from "../modules/module-host.ts";
import type { Env } from "../process/process.ts";

export type WatchOptions = {
  readonly agent: string;
  /** The project: where modules are. */
  readonly root: string;
  /** Where the run works: where files are looked at. */
  readonly cwd: string;
  /** Which files of it may be looked at. */
  readonly ground?: Grounded;
  readonly env: Env;
  /** Puts the process of a module into the sandbox. */
  readonly confine?: ModuleHostOptions["confine"];
  /** How long an address may take to answer. */
  readonly timeoutMs?: number;
  readonly github: () => Promise<GithubOutcome<GithubClient>>;
  /** Hears what the user should know of, although the run goes on. */
  readonly onWarning?: (text: string) => void;
};

/** Most runs look at nothing, so what looks is loaded when it is needed. */
export function createWatch(options: WatchOptions): Watch {
  const hosts = new Map<string, Promise<ModuleHost>>();

  /** One for each rule: what a module keeps in mind belongs to the settings it was asked with. */
  function hostOf(rule: ModuleRule): Promise<ModuleHost> {
    const key = JSON.stringify(rule);
    const known = hosts.get(key);
    if (known !== undefined) return known;
    const { file, digest } = rule.module;
    const host = openHost(join(options.root, file), digest, options);
    hosts.set(key, host);
    return host;
  }

  return {
    look: async (rule, glance, signal) => {
      if (rule.kind === "state") return short(await lookAt(rule.resource, glance.args, options, signal));
      const { askModule } = await import("../modules/verdict-module.ts");
      return short(await askModule(await hostOf(rule), rule, options.agent, glance, signal));
    },
    close: async () => {
      for (const host of hosts.values()) await (await host).close();
    },
  };
}

type ModuleRule = Extract<OutsideRule, { kind: "module" }>;

async function openHost(
  file: string,
  digest: string,
  { cwd, env, confine }: WatchOptions,
): Promise<ModuleHost> {
  const { createModuleHost } = await import("../modules/module-host.ts");
  const { VERDICT_ADAPTER } = await import("../modules/verdict-module.ts");
  const sandbox = confine === undefined ? {} : { confine };
  return createModuleHost({ file, digest, cwd, env, adapter: VERDICT_ADAPTER, ...sandbox });
}

async function lookAt(
  resource: Resource,
  args: JsonObject,
  { cwd, ground, timeoutMs = TIMEOUT_MS, github, onWarning }: WatchOptions,
  signal: AbortSignal,
): Promise<Sight> {
  switch (resource.kind) {
    case "file": {
      const { lookAtFile } = await import("./look-file.ts");
      return await lookAtFile(resource, args, { cwd, ...(ground !== undefined && { ground }) }, signal);
    }
    case "api": {
      const { lookAtAddress } = await import("./look-address.ts");
      return await lookAtAddress(resource, args, timeoutMs, signal);
    }
    case "github-issue":
    case "github-project": {
      const { lookAtGitHub, notLookedAt } = await import("./look-github.ts");
      const opened = await github();
      if (opened.ok) return await lookAtGitHub(resource, args, opened.value.within(signal));
      const sight = notLookedAt(resource.kind === "github-issue" ? "issue" : "project", opened.why);
      onWarning?.(sight.what);
      return sight;
    }
  }
}

const TIMEOUT_MS = 10_000;

/** What was seen is recorded at every visit. */
function short({ met, what }: Sight): Sight {
  return { met, what: clipCaptured(what, MOST_WORDS) };
}

const MOST_WORDS = 2000;
