/** Which GitHub a run speaks to: whose repository, at which address, and with whose token. */
import { NOT_INSTALLED, type Programs } from "../../flow/machine/programs.ts";
import { githubFailure, type GithubOutcome } from "./github-faults.ts";
import type { Git } from "../git/git.ts";
import { findGitPlace as findTree } from "../git/git-place.ts";
import { childEnv, isFinished, type Env, type RunProcess } from "../process/process.ts";

export type GithubPlace = {
  readonly host: string;
  readonly owner: string;
  readonly repo: string;
  /** Who said so: a variable, or a remote. */
  readonly from: string;
  /** Where REST requests go, without a slash at the end, and where GraphQL queries go. */
  readonly api: string;
  readonly graph: string;
};

/** `from` may be shown, `value` never. */
export type Token = { readonly value: string; readonly from: string };

export type GithubSurroundings = {
  /** The user's own environment, never anything that a file of the project says. */
  readonly env: Env;
  readonly git: Git;
  readonly programs: Pick<Programs, "gh" | "path">;
  readonly exec: RunProcess;
  readonly cwd: string;
  readonly signal: AbortSignal;
};

/** A repository that was found before, at the address that the environment gives now. */
export function placeAt(named: NamedRepository, env: Env): GithubPlace {
  const api = apiOf(named.host, env);
  const graph = api.endsWith("/api/v3") ? api.replace(/\/v3$/, "/graphql") : `${api}/graphql`;
  return { ...named, api, graph };
}

/** Whether the user's environment says which repository it is, rightly or not. */
export function isNamedInEnv(env: Env): boolean {
  return Boolean(env["GH_REPO"]) || nameInEnv(env) !== null;
}

export async function findGithubPlace(around: GithubSurroundings): Promise<GithubOutcome<GithubPlace>> {
  const inEnv = nameInEnv(around.env);
  const { GH_REPO: said } = around.env;
  if (said && inEnv?.from !== "GH_REPO") {
    const why = `GH_REPO is ${JSON.stringify(said)}, which names no repository: write it as OWNER/NAME.`;
    return githubFailure("no-repository", why);
  }
  const named = inEnv ?? (await nameInRemotes(around));
  if (named === null) {
    const why = `It is not known which GitHub repository this is: set GH_REPO=OWNER/NAME, or add a remote of it to the git repository in ${around.cwd}.`;
    return githubFailure("no-repository", why);
  }
  return { ok: true, value: placeAt(named, around.env) };
}

/** An address that is the usual one of github.com says nothing about another host. */
function apiOf(host: string, env: Env): string {
  const given = env["GITHUB_API_URL"]?.replace(/\/+$/, "");
  if (isAddressGiven(env) && given !== undefined) return given;
  if (host === GITHUB) return API;
  return isTenant(host) ? `https://api.${host}` : `https://${host}/api/v3`;
}

function isAddressGiven(env: Env): boolean {
  const given = env["GITHUB_API_URL"]?.replace(/\/+$/, "") ?? "";
  return given !== API && /^https?:$/.test(URL.parse(given)?.protocol ?? "");
}

const GITHUB = "github.com";
const API = "https://api.github.com";

/** A company's own part of GitHub's cloud. */
function isTenant(host: string): boolean {
  return host.endsWith(".ghe.com");
}

export type NamedRepository = Pick<GithubPlace, "host" | "owner" | "repo" | "from">;

function nameInEnv(env: Env): NamedRepository | null {
  const host = env["GH_HOST"] || hostOf(env["GITHUB_SERVER_URL"]) || GITHUB;
  for (const from of ["GH_REPO", "GITHUB_REPOSITORY"]) {
    const found = parseRepository(env[from] ?? "", host);
    if (found !== null) return { ...found, from };
  }
  return null;
}

function hostOf(address: string | undefined): string | null {
  return URL.parse(address ?? "")?.host || null;
}

async function nameInRemotes({ git, cwd }: GithubSurroundings): Promise<NamedRepository | null> {
  if (findTree(cwd) === null) return null;
  const remotes = await git(cwd, ["remote", "--verbose"], { harmless: true });
  if (!remotes.ok) return null;
  const named = remotes.out.split("\n").flatMap((line) => {
    const [, name, address] = /^([^\t]+)\t(.*) \(fetch\)/.exec(line) ?? [];
    return name === undefined || address === undefined ? [] : [{ name, address }];
  });
  for (const { name, address } of named.toSorted((a, b) => Number(isOrigin(b)) - Number(isOrigin(a)))) {
    const found = parseRepository(address, null);
    if (found !== null) return { ...found, from: `the remote ${name}` };
  }
  return null;
}

function isOrigin({ name }: { readonly name: string }): boolean {
  return name === "origin";
}

export type GithubRepository = { readonly host: string; readonly owner: string; readonly repo: string };

/**
 * A repository's address in any of the forms that git takes, or `[HOST/]OWNER/NAME` where a host is assumed. Names and
 * passwords in an address are dropped.
 */
export function parseRepository(text: string, assumed: string | null): GithubRepository | null {
  const url = /^(?:https?|ssh|git|git\+ssh):\/\//.test(text) ? URL.parse(text) : null;
  if (url !== null) {
    const host = url.protocol.startsWith("http") ? url.host : url.hostname;
    return named(host, url.pathname);
  }
  const scp = /^(?:[^@/\s]+@)?([A-Za-z0-9.-]+):(?!\/\/)(.+)$/.exec(text);
  if (scp !== null) return named(scp[1] ?? "", scp[2] ?? "");
  const short = /^(?:([A-Za-z0-9.:-]+)\/)?([^/\s]+\/[^/\s]+)$/.exec(text);
  if (short === null || assumed === null) return null;
  return named(short[1] ?? assumed, short[2] ?? "");
}

function named(host: string, path: string): GithubRepository | null {
  const parts = /^\/?([A-Za-z0-9_][A-Za-z0-9_-]*)\/([A-Za-z0-9._-]+?)(?:\.git)?\/?$/.exec(path);
  const [, owner, repo] = parts ?? [];
  if (owner === undefined || repo === undefined || /^\.+$/.test(repo)) return null;
  // The ways in by SSH and by browser lead to the same place.
  const plain = host.toLowerCase().replace(/^(?:ssh|www)\.(?=github\.com$)/, "");
  return /^[a-z0-9.-]+(?::\d+)?$/.test(plain) ? { host: plain, owner, repo } : null;
}

/**
 * A token goes only to a host that the user has named themselves: github.com, one that their environment names, or one
 * that they signed in to with the program gh. A remote of a repository alone does not count.
 */
export async function findToken(
  place: GithubPlace,
  around: GithubSurroundings,
): Promise<GithubOutcome<Token>> {
  const { host } = place;
  const isOurs = host === GITHUB || isTenant(host);
  const isGiven = isAddressGiven(around.env);
  const names = [
    ...(isOurs ? [] : isNamed(place, around.env) || isGiven ? ENTERPRISE_TOKENS : []),
    ...(isOurs || isGiven ? TOKENS : []),
  ];
  for (const from of names) {
    const value = around.env[from]?.trim() ?? "";
    if (TOKEN.test(value)) return { ok: true, value: { value, from } };
  }
  const said = await askProgram(host, around);
  if (said !== null) return { ok: true, value: { value: said, from: "gh auth token" } };
  const why = isOurs
    ? `There is no token for ${host}: set GH_TOKEN, or sign in with "gh auth login".`
    : `There is no token for ${host}: set GH_HOST=${host} and GH_ENTERPRISE_TOKEN, or sign in with "gh auth login --hostname ${host}".`;
  return githubFailure("no-token", why);
}

/** What can stand in a header. */
const TOKEN = /^[\x21-\x7e]+$/;
const TOKENS = ["GH_TOKEN", "GITHUB_TOKEN"];
const ENTERPRISE_TOKENS = ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"];

function isNamed({ host, from }: GithubPlace, env: Env): boolean {
  return from === "GH_REPO" || env["GH_HOST"] === host || hostOf(env["GITHUB_SERVER_URL"]) === host;
}

/** null: there is no such program, or no one is signed in with it. */
async function askProgram(
  host: string,
  { env, exec, programs, signal }: GithubSurroundings,
): Promise<string | null> {
  const command = [programs.gh ?? NOT_INSTALLED, "auth", "token", "--hostname", host];
  const seen = { ...childEnv(env, GH_ENV), PATH: programs.path };
  // It needs nothing of the project.
  const result = await exec({
    command,
    cwd: "/",
    env: seen,
    timeoutMs: 10_000,
    maxOutputBytes: 4096,
    signal,
  });
  const token = result.stdout.trim();
  return isFinished(result) && result.exitCode === 0 && TOKEN.test(token) ? token : null;
}

/** Where gh keeps what it knows. */
const GH_ENV = [
  "GH_CONFIG_DIR",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_RUNTIME_DIR",
  "DBUS_SESSION_BUS_ADDRESS",
];
