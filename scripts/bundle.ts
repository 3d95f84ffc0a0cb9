/**
 * Bundles the command: starting is what it does most, and hundreds of small files cost a run of three steps more than
 * its work does. The tests start what this makes.
 */
import { build } from "rolldown";

const root = decodeURIComponent(new URL("..", import.meta.url).pathname);

/** Into `dir`: `main.js` is the command, and `bench.js` what `lockstep bench` loads. */
export function bundle(dir: string, logLevel: "warn" | "silent" = "warn"): Promise<unknown> {
  return build({
    cwd: root,
    input: { main: "src/cli/main.ts", bench: "bench/measure.ts" },
    platform: "node",
    // Optional parts are loaded from where the user installed them, if at all.
    external: [/^node:/, /^@ai-sdk\//],
    plugins: [
      {
        name: "load-when-used",
        renderChunk: (code, { name }) => withPlainBuiltins(withLatePackages(code), name === "main"),
      },
    ],
    output: { dir, format: "esm", comments: { legal: true, annotation: false, jsdoc: false } },
    logLevel,
  });
}

/**
 * `import` of a built-in module makes Node evaluate all its exports, among them the parts that it loads when they are
 * used: node:fs, node:crypto and node:util would take a tenth of a short run. `getBuiltinModule` does not. What the front
 * door loads must load on any Node, also on those that do not have it.
 */
function withPlainBuiltins(code: string, isEntry: boolean): string {
  const get = isEntry
    ? "(process.getBuiltinModule ?? createRequire(import.meta.url))"
    : "process.getBuiltinModule";
  const plain = code.replaceAll(
    /^import (?:(\w+)(?:, )?)?(?:\{ (.*?) \})? from "(node:.*?)";$/gm,
    (_, whole?: string, named?: string, name?: string) => {
      const names = [...(whole ? [whole] : []), ...(named ? [`{ ${named.replaceAll(" as ", ": ")} }`] : [])];
      return `const ${names.map((each) => `${each} = ${get}("${name}")`).join(", ")};`;
    },
  );
  if (/^import .* from "node:/m.test(plain))
    throw new Error("A built-in module is imported in another form.");
  return isEntry ? plain.replace(/^(?!#!)/m, 'import { createRequire } from "node:module";\n') : plain;
}

/** A package in CommonJS is evaluated when it is first used, not when it is imported: few runs compile a schema. */
function withLatePackages(code: string): string {
  let late = code;
  for (const [line, name, load] of code.matchAll(/^var (import_\w+) = (require_\w+)\(\);\n/gm))
    late = late.replace(line, "").replaceAll(new RegExp(`\\b${name}\\b`, "g"), `(${load}())`);
  return late;
}
