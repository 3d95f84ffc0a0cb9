/** What `lockstep init` finds out about a project: how it is tested and how its packages are kept. Reads files at its root, runs nothing. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isObject } from "../../flow/json.ts";
import { isFolder } from "../../run/world/files.ts";

export type ProjectFacts = {
  /** The command that tests the project; null: none was found. */
  readonly tests: string | null;
  /** Lists the packages that are out of date. */
  readonly outdated: string;
  /** The folder of the documentation. */
  readonly docs: string;
};

/** Commands of ours, chosen by which files are there: what the files say never becomes part of a command. */
const KINDS: readonly {
  readonly file: string;
  readonly tests: string;
  readonly outdated?: string;
  /** The file counts only if it matches. */
  readonly holds?: RegExp;
}[] = [
  { file: "Cargo.toml", tests: "cargo test", outdated: "cargo update --dry-run" },
  { file: "go.mod", tests: "go test ./...", outdated: "go list -m -u all" },
  { file: "deno.json", tests: "deno test", outdated: "deno outdated" },
  { file: "deno.jsonc", tests: "deno test", outdated: "deno outdated" },
  { file: "mix.exs", tests: "mix test", outdated: "mix hex.outdated" },
  { file: "pom.xml", tests: "mvn test" },
  { file: "gradlew", tests: "./gradlew test" },
  { file: "uv.lock", tests: "uv run pytest", outdated: "uv pip list --outdated" },
  { file: "pytest.ini", tests: "python3 -m pytest", outdated: "python3 -m pip list --outdated" },
  { file: "pyproject.toml", tests: "python3 -m pytest", outdated: "python3 -m pip list --outdated" },
  { file: "Makefile", tests: "make test", holds: /^test *:/m },
];

const PACKAGE_MANAGERS = [
  { file: "pnpm-lock.yaml", name: "pnpm" },
  { file: "yarn.lock", name: "yarn" },
  { file: "bun.lock", name: "bun" },
] as const;

const DOCS = ["docs", "doc", "documentation"];

export function projectFacts(root: string): ProjectFacts {
  const has = (file: string) => existsSync(join(root, file));
  const docs = DOCS.find((folder) => isFolder(join(root, folder))) ?? "docs";
  const manager = PACKAGE_MANAGERS.find(({ file }) => has(file))?.name ?? "npm";
  const kind = KINDS.find(({ file, holds }) => has(file) && (holds?.test(textOf(join(root, file))) ?? true));
  const isNode = has("package.json");
  const tests = hasTestScript(root) ? `${manager === "bun" ? "bun run" : manager} test` : null;
  return {
    tests: tests ?? kind?.tests ?? null,
    outdated: isNode || kind?.outdated === undefined ? `${manager} outdated` : kind.outdated,
    docs,
  };
}

/** `npm init` writes a script that only fails. */
function hasTestScript(root: string): boolean {
  try {
    const parsed: unknown = JSON.parse(textOf(join(root, "package.json")));
    const script = isObject(parsed) && isObject(parsed.scripts) ? parsed.scripts.test : undefined;
    return typeof script === "string" && !script.includes("no test specified");
  } catch {
    return false;
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
