/**
 * Bundles the command: starting is what it does most, and hundreds of small files cost a run of three steps more than
 * its work does. The tests start what this makes.
 */
import { build, type ModuleInfo } from "rolldown";
import { parseAst } from "rolldown/parseAst";
import { compileEagerly } from "./eager.ts";

const root = decodeURIComponent(new URL("..", import.meta.url).pathname);

/** Into `dir`: `main.js` is the command, and `bench.js` what `lockstep bench` loads. */
export async function bundle(dir: string, logLevel: "warn" | "silent" = "warn"): Promise<void> {
  await build({
    cwd: root,
    input: { main: "src/cli/main.ts", bench: "bench/measure.ts" },
    platform: "node",
    // Optional parts are loaded from where the user installed them, if at all.
    external: [/^node:/, /^@ai-sdk\//],
    plugins: [
      {
        name: "load-when-used",
        renderChunk: (code, { name }) => withPlainBuiltins(withLatePackages(code), FIRST.has(name)),
      },
    ],
    output: {
      dir,
      format: "esm",
      comments: { legal: true, annotation: false, jsdoc: false },
      codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: fileFor() }] },
    },
    logLevel,
  });
  compileEagerly(dir);
}

/** The files that are loaded on any Node, also on one that is too old. */
const FIRST: ReadonlySet<string> = new Set(["main", "door", "rolldown-runtime"]);

type Graph = { readonly getModuleInfo: (id: string) => ModuleInfo | null };

/**
 * Few files load faster than many: all that `run` imports is in three, of which `check` needs two. The front door has one
 * of its own, with what `help` and `check` share, and what is loaded on demand stays apart.
 */
function fileFor(): (id: string, graph: Graph) => string | null {
  let files: ReadonlyMap<string, string> | null = null;
  return (id, graph) => (files ??= sharedFiles(graph)).get(id) ?? null;
}

function sharedFiles(graph: Graph): ReadonlyMap<string, string> {
  const reachable = (from: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(from)) return seen;
    seen.add(from);
    for (const id of graph.getModuleInfo(from)?.importedIds ?? []) reachable(id, seen);
    return seen;
  };
  const door = reachable(`${root}src/cli/door.ts`);
  const commands = [...door].flatMap((id) => graph.getModuleInfo(id)?.dynamicallyImportedIds ?? []);
  const named = (name: string, ids: readonly string[]) => {
    const found = ids.find((id) => id.endsWith(`/${name}.ts`));
    if (found === undefined) throw new Error(`${name}.ts is not imported on demand any more.`);
    return found;
  };
  const help = reachable(named("help", commands));
  const imported = (command: string, also: readonly string[]) => {
    const all = new Set(reachable(named(command, commands)));
    for (const name of also) {
      const onDemand = [...all].flatMap((id) => graph.getModuleInfo(id)?.dynamicallyImportedIds ?? []);
      reachable(named(name, onDemand), all);
    }
    return [...all].filter((id) => id.includes("/src/"));
  };
  // What nearly all of them load on their way.
  const loading = ["registry-agent", "toolbox", "gate", "schema"];
  const run = imported("run", [...loading, "trust-lines", "trust-store"]);
  const check = imported("check", loading);
  return new Map([
    ...run.filter((id) => !help.has(id)).map((id) => [id, "run"] as const),
    ...check.map((id) => [id, help.has(id) ? "door" : "load"] as const),
    ...Array.from(door, (id) => [id, "door"] as const),
  ]);
}

/**
 * `import` of a built-in module makes Node evaluate all its exports, among them the parts that it loads when they are
 * used: node:fs, node:crypto and node:util would take a tenth of a short run. `getBuiltinModule` does not. What the front
 * door loads must load on any Node, also on those that do not have it.
 */
function withPlainBuiltins(code: string, isFirst: boolean): string {
  const get = isFirst
    ? "(process.getBuiltinModule ?? requireFrom(import.meta.url))"
    : "process.getBuiltinModule";
  let passedOn: ReadonlySet<string> | null = null;
  const plain = code.replaceAll(
    /^import (?:(\w+)(?:, )?)?(?:\{ (.*?) \})? from "(node:.*?)";$/gm,
    (_, whole?: string, named?: string, name?: string) => {
      const all = named?.split(", ") ?? [];
      const isLate = (one: string) => !(passedOn ??= namesPassedOn(code)).has(one.split(" as ").at(-1)!);
      const late = isFirst || !LATE.has(name!) ? [] : all.filter(isLate);
      const early = all.filter((one) => !late.includes(one));
      const names = [
        ...(whole ? [whole] : []),
        ...(early.length > 0 ? [`{ ${early.join(", ").replaceAll(" as ", ": ")} }`] : []),
      ];
      const lines = late.map((one) => {
        const [exported = "", local = exported] = one.split(" as ");
        return `const ${local} = (...given) => ${get}("${name}").${exported}(...given);`;
      });
      if (names.length > 0)
        lines.push(`const ${names.map((each) => `${each} = ${get}("${name}")`).join(", ")};`);
      return lines.join("\n");
    },
  );
  if (/^import .* from "node:/m.test(plain))
    throw new Error("A built-in module is imported in another form.");
  return isFirst
    ? plain.replace(/^(?!#!)/m, 'import { createRequire as requireFrom } from "node:module";\n')
    : plain;
}

/** Built-in modules that take a while to load, and of which many commands call nothing. */
const LATE: ReadonlySet<string> = new Set([
  "node:child_process",
  "node:crypto",
  "node:fs/promises",
  "node:os",
  "node:timers/promises",
  "node:vm",
]);

/** Names that are used in another way than by calling them: no function can stand in for those. */
function namesPassedOn(code: string): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, name, computed, key, property, callee, ...parts } = value as {
      readonly [key: string]: unknown;
    };
    if (type === "ImportDeclaration") return;
    if (type === "Identifier") names.add(name as string);
    if ((callee as { readonly type?: string } | undefined)?.type !== "Identifier") visit(callee);
    if (computed === true) [key, property].forEach(visit);
    Object.values(parts).forEach(visit);
  };
  visit(parseAst(code, { sourceType: "module" }));
  return names;
}

/** A package in CommonJS is read and evaluated when it is first used, not when it is imported: few runs compile a schema. */
function withLatePackages(code: string): string {
  let late = code.replaceAll(
    /^import \{ (\w+) as (require_\w+) \} from "(\..*?)";$/gm,
    (_, exported: string, load: string, file: string) =>
      `const ${load} = () => process.getBuiltinModule("node:module").createRequire(import.meta.url)("${file}").${exported}();`,
  );
  for (const [line, name, load] of code.matchAll(/^var (import_\w+) = (require_\w+)\(\);\n/gm))
    late = late.replace(line, "").replaceAll(new RegExp(`\\b${name}\\b`, "g"), `(${load}())`);
  return late;
}
