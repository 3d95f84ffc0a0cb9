/**
 * Whether the commands of a run are to be confined and which hosts they may reach: decided before the machine is looked
 * at. Commands are confined unless the user says otherwise; a project can demand a sandbox, and never loosen one.
 */
import type { Sandbox } from "../../flow/settings.ts";
import type { NetworkWish, SandboxWish } from "./config.ts";

export type SandboxRequest = {
  readonly sandbox: Sandbox;
  /** The user's own word, from a flag or their settings. */
  readonly wish: SandboxWish;
  readonly network: NetworkWish | null;
  /** Whether a run of the flow can start a process. */
  readonly starts: boolean;
  /** The backend, where it starts commands by its own means, outside of any sandbox of ours. */
  readonly unconfinable: string | null;
  /** A run that goes on was confined when it began: then it stays so. */
  readonly began?: boolean;
};

export type Decision =
  /** There is nothing to confine. */
  | { readonly kind: "idle"; readonly why: string }
  | { readonly kind: "unconfined"; readonly why: string; readonly warning: Warning | null }
  | { readonly kind: "refused"; readonly message: string }
  | Confine;

export type Confine = {
  readonly kind: "confine";
  /** Without a sandbox the run must not begin. */
  readonly must: boolean;
  readonly why: string;
  readonly network: Network;
  readonly allowedPaths: readonly string[];
  readonly warning: Warning | null;
};

export type Warning = {
  readonly text: string;
  /** It is to be said before the first command, not only in the result. */
  readonly loud: boolean;
};

export type Network = {
  /** null: none at all. `all`: the network of this machine. */
  readonly hosts: readonly string[] | "usual" | "all" | null;
  /** Further hosts beside the usual ones. */
  readonly more: readonly string[];
  /** Somebody said so: where these hosts cannot be reached, the run must not begin. */
  readonly must: boolean;
};

export function decideSandbox({
  sandbox,
  wish,
  network,
  starts,
  unconfinable,
  began,
}: SandboxRequest): Decision {
  const isAsked = sandbox.asked === true && sandbox.enabled;
  const isRefused = sandbox.asked === true && !sandbox.enabled;
  if (wish === "off") {
    const text = "commands are not sandboxed, although the agent asks for a sandbox";
    const warning = isAsked && (starts || unconfinable !== null) ? { text, loud: false } : null;
    return { kind: "unconfined", why: "disabled by --sandbox off or your settings", warning };
  }
  const demand = isAsked
    ? "asked for by the agent file"
    : wish === "on"
      ? "asked for by --sandbox on or your settings"
      : began === true
        ? "the setting this run started with"
        : null;
  if (unconfinable !== null) {
    if (demand !== null) return { kind: "refused", message: notConfinable(unconfinable, demand) };
    const why = `the agent behind "${unconfinable}" starts its commands itself, outside the Lockstep sandbox`;
    return { kind: "unconfined", why, warning: unconfinedWarning(why) };
  }
  if (!starts) return { kind: "idle", why: "this flow starts no process" };
  return {
    kind: "confine",
    must: demand !== null,
    why: demand ?? "on by default",
    network: networkOf(sandbox, network),
    allowedPaths: sandbox.filesystem.allowedPaths,
    warning: isRefused && wish === "auto" ? { text: NOT_BY_THE_PROJECT, loud: false } : null,
  };
}

/** The one line that is said before the first command that nothing confines. */
export function unconfinedWarning(why: string): Warning {
  return { text: `Commands are not sandboxed: ${why}. They run with your permissions.`, loud: true };
}

const NOT_BY_THE_PROJECT =
  "commands are sandboxed, although the agent file says sandbox.enabled: false; only you can disable the sandbox, with --sandbox off";

/** The user first, then the agent file; else what package managers need, if there is a proxy to let it through. */
function networkOf({ network }: Sandbox, wish: NetworkWish | null): Network {
  if (wish !== null) return { hosts: wish === "none" ? null : wish, more: [], must: true };
  if (network.asked !== true) return { hosts: "usual", more: [], must: false };
  switch (network.mode) {
    case "none":
      return { hosts: null, more: [], must: true };
    case "trusted":
      return { hosts: "usual", more: network.trustedDomains, must: true };
    case "custom":
      return { hosts: network.trustedDomains, more: [], must: true };
  }
}

function notConfinable(backend: string, demand: string): string {
  return (
    `A sandbox is ${demand}, but the agent behind "${backend}" starts its commands itself, outside the sandbox. ` +
    `Use another backend, or run it without a sandbox on your own responsibility: --sandbox off.`
  );
}
