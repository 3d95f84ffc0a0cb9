/** Every value that must not be seen in what a run records, shows or sends: from the environment and the user's own settings. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import {
  credentialsIn,
  secretsIn,
  secretsInHeaders,
  secretValues,
} from "../../boundaries/redact/secret-names.ts";
import type { Flow } from "../../flow/flow.ts";
import { serverValues, variablesIn } from "../../flow/mcp.ts";
import { readConfig, type UserConfig } from "./config.ts";
import { isFolder, textIfAny } from "./files.ts";
import type { DriveOptions } from "../options.ts";

/** `config`: the user's settings, where they were read already. */
export type SecretSource = Pick<DriveOptions, "env" | "cwd" | "secrets"> & { readonly config?: UserConfig };

export function secretsOf(
  { env = process.env, cwd = process.cwd(), secrets = NONE, config }: SecretSource,
  flow?: Flow,
): readonly string[] {
  const byUser = givenByUser(env, config);
  const named = secretValues(new Set([...namedIn(flow), ...byUser.names]), env);
  const values = [...secretsIn(env), ...secrets, ...named, ...byUser.values, ...leftByGit(cwd, env)];
  return [...new Set(values)];
}

const NONE: readonly string[] = [];

/** Variables that somebody names as the place of a key, whatever they are called. */
function namedIn(flow: Flow | undefined): readonly string[] {
  if (flow?.settings.mcpServers === undefined) return NONE;
  const servers = Object.values(flow.settings.mcpServers);
  return servers.flatMap((server) => variablesIn(serverValues(server)));
}

type Given = { readonly names: readonly string[]; readonly values: readonly string[] };

/** Of the user's own config.json: the variables that it names, and the secrets that are written out in it. */
function givenByUser(env: NodeJS.ProcessEnv, config?: UserConfig): Given {
  try {
    const { models, providers, programs, notify } = config ?? readConfig(env);
    const entries = [...Object.values(models), ...Object.values(providers)];
    const settings = entries.filter((entry) => typeof entry !== "string");
    const keys = settings.flatMap(({ apiKeyEnv }) => apiKeyEnv ?? []);
    const inHeaders = settings.flatMap(({ headers }) => variablesIn(headers ?? {}));
    const values = settings.flatMap(({ headers }) => secretsInHeaders(headers ?? {}));
    const passed = Object.values(programs).flatMap(({ pass = [] }) => pass);
    const targets = Object.values(notify);
    const signing = targets.flatMap(({ secretEnv = [], pass = [] }) => [secretEnv, pass].flat());
    // Many services let anybody in who knows the address.
    const addresses = targets.flatMap(({ webhook = [] }) => webhook);
    return { names: [...keys, ...inHeaders, ...passed, ...signing], values: [...values, ...addresses] };
  } catch {
    // What is wrong with the file is reported where its settings are used.
    return { names: [], values: [] };
  }
}

// Credentials in the configuration of git: actions/checkout leaves a token there, and so do addresses with a password.

function leftByGit(cwd: string, env: NodeJS.ProcessEnv): readonly string[] {
  const { HOME: home, XDG_CONFIG_HOME: config } = env;
  const files = [
    ...ofRepository(resolve(cwd)),
    ...(home === undefined ? [] : [join(home, ".gitconfig"), join(home, ".config/git/config")]),
    ...(config === undefined ? [] : [join(config, "git/config")]),
  ];
  return files.flatMap((file) => {
    const text = read(file);
    const included = includedIn(text, dirname(file), home).map(read);
    return [text, ...included].flatMap(credentialsIn);
  });
}

/** Also where git itself would not see a repository: what is left of one may hold a token. */
function ofRepository(cwd: string): readonly string[] {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const at = join(folder, ".git");
    if (isFolder(at)) return [join(at, "config"), join(at, "config.worktree")];
    const [, elsewhere] = /^gitdir: (.+)$/m.exec(read(at)) ?? [];
    if (elsewhere !== undefined) {
      const own = resolve(folder, elsewhere);
      const common = resolve(own, read(join(own, "commondir")).trim() || ".");
      return [join(common, "config"), join(own, "config.worktree")];
    }
    if (folder === dirname(folder)) return [];
  }
}

/** One level is enough: what leaves tokens behind includes no further files. */
function includedIn(text: string, folder: string, home: string | undefined): readonly string[] {
  const paths = [...text.matchAll(/^\s*path\s*=\s*"?([^"\n]{1,1024}?)"?\s*$/gim)].map(
    ([, path = ""]) => path,
  );
  return paths.slice(0, MOST_INCLUDED).map((path) => {
    if (path.startsWith("~/") && home !== undefined) return join(home, path.slice(2));
    return isAbsolute(path) ? path : join(folder, path);
  });
}

const MOST_INCLUDED = 20;
const MOST_READ = 1024 * 1024;

function read(file: string): string {
  return textIfAny(file, MOST_READ);
}
