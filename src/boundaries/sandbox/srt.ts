/**
 * The way out of the sandbox to listed hosts: the filtering proxy of `@anthropic-ai/sandbox-runtime`, an optional peer.
 * Only its proxy is used. Its own file-system profile puts empty files into the project and lets a worktree's commands
 * write git hooks, so files stay with ours.
 */
import { errorText } from "../../flow/text/harmless.ts";
import { installCommand } from "../../flow/machine/install.ts";
import type { Bridge } from "./bwrap.ts";

export const SRT = "@anthropic-ai/sandbox-runtime";
/** Before 1.0 any release may change what we call; tried with this one. */
export const SRT_VERSION = "0.0.78";

/** What we use of it. */
export type Srt = {
  readonly SandboxManager: {
    readonly initialize: (config: object) => Promise<void>;
    readonly waitForNetworkInitialization: () => Promise<boolean>;
    readonly getLinuxHttpSocketPath: () => string | undefined;
    readonly getProxyAuthToken: () => string | undefined;
    readonly reset: () => Promise<void>;
  };
};

export type BridgeOpened =
  | { readonly kind: "open"; readonly bridge: Bridge }
  /** `isMissing`: it is not installed, which matters only to those who asked for it. */
  | { readonly kind: "closed"; readonly why: string; readonly isMissing: boolean };

/** There is one proxy in a process: runs with the same hosts share it, and others have to wait for another process. */
let shared: { readonly key: string; readonly opened: Promise<BridgeOpened>; users: number } | null = null;

export async function openBridge(
  hosts: readonly string[],
  load: () => Promise<Srt> = installed,
): Promise<BridgeOpened> {
  if (load === installed && missing !== null) return missing;
  const key = hosts.toSorted().join(" ");
  if (shared !== null && shared.key !== key) {
    return {
      kind: "closed",
      why: "another run in this process reaches other hosts; run it in a process of its own",
      isMissing: false,
    };
  }
  shared ??= { key, opened: start(hosts, load), users: 0 };
  shared.users += 1;
  const opened = await shared.opened;
  if (opened.kind === "closed") shared = null;
  if (opened.kind === "closed" && opened.isMissing && load === installed) missing = opened;
  return opened;
}

/** What is not there is looked for once: a thousand runs would look a thousand times. */
let looked: Promise<Srt> | null = null;
let missing: BridgeOpened | null = null;

function installed(): Promise<Srt> {
  return (looked ??= import(SRT) as Promise<Srt>);
}

/** Whether it is installed; nothing is started. */
export async function hasProxy(): Promise<boolean> {
  return await installed().then(
    () => true,
    () => false,
  );
}

async function start(hosts: readonly string[], load: () => Promise<Srt>): Promise<BridgeOpened> {
  let srt: Srt["SandboxManager"];
  try {
    srt = (await load()).SandboxManager;
  } catch {
    const why = `${SRT} is not installed; install it (${installCommand(`${SRT}@${SRT_VERSION}`, import.meta.url)})`;
    return { kind: "closed", why, isMissing: true };
  }
  try {
    await srt.initialize({
      network: { allowedDomains: hosts, deniedDomains: [] },
      filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
    });
    await srt.waitForNetworkInitialization();
    const socket = srt.getLinuxHttpSocketPath();
    if (socket === undefined) return closed(`${SRT} opened no proxy on this system`);
    return { kind: "open", bridge: { socket, token: srt.getProxyAuthToken(), close: () => leave(srt) } };
  } catch (error) {
    return closed(`${SRT} cannot start: ${errorText(error)}`);
  }
}

function closed(why: string): BridgeOpened {
  return { kind: "closed", why, isMissing: false };
}

async function leave(srt: Srt["SandboxManager"]): Promise<void> {
  if (shared === null || --shared.users > 0) return;
  shared = null;
  await srt.reset();
}
