/** Modules of the project, parsed and not run: a thread of its own compiles them and never evaluates anything. */
import type { Worker } from "node:worker_threads";
import { shownInLine } from "../../flow/text/harmless.ts";

export type ModuleText = { readonly file: string; readonly text: string };

export type ModuleParsed =
  /** `imports`: what it names in static imports. */
  | { readonly kind: "parsed"; readonly imports: readonly string[] }
  | { readonly kind: "broken"; readonly what: string; readonly line: number; readonly column: number }
  /** It could not be looked at, which says nothing about it. */
  | { readonly kind: "unknown"; readonly why: string };

/** One result for each, in order. Only an error that ends the thread carries its place, so each broken one ends one. */
export async function parseModules(modules: readonly ModuleText[]): Promise<readonly ModuleParsed[]> {
  const results: ModuleParsed[] = [];
  while (results.length < modules.length) results.push(...(await parseSome(modules.slice(results.length))));
  return results;
}

/**
 * In the words of a script, since the command is one bundled file that a thread could not start from. A `.js` file may be
 * of either kind; types are replaced by blanks, so that places stay what they are.
 */
const PARSE = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { stripTypeScriptTypes } = require("node:module");
  const vm = require("node:vm");
  for (const { file, text } of workerData) {
    const plain = /\\.m?ts$/.test(file) ? stripTypeScriptTypes(text, { sourceUrl: file }) : text;
    let imports = null;
    if (/\\.js$/.test(file)) {
      try {
        vm.compileFunction(plain, ["exports", "require", "module", "__filename", "__dirname"]);
        imports = [];
      } catch {}
    }
    imports ??= new vm.SourceTextModule(plain, { identifier: file }).dependencySpecifiers;
    parentPort.postMessage(imports);
  }
`;

async function parseSome(modules: readonly ModuleText[]): Promise<readonly ModuleParsed[]> {
  const { Worker } = await import("node:worker_threads");
  const worker = new Worker(PARSE, {
    eval: true,
    workerData: modules,
    env: {},
    execArgv: ["--experimental-vm-modules", "--no-warnings"],
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  try {
    return await resultsOf(worker, modules);
  } finally {
    await worker.terminate();
  }
}

function resultsOf(worker: Worker, modules: readonly ModuleText[]): Promise<readonly ModuleParsed[]> {
  const results: ModuleParsed[] = [];
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve([...results, { kind: "unknown", why: TOO_LONG }]), LONGEST_MS);
    const settle = (more: readonly ModuleParsed[]) => {
      clearTimeout(timer);
      resolve([...results, ...more]);
    };
    worker.on("message", (imports: readonly string[]) => results.push({ kind: "parsed", imports }));
    let fault: unknown = null;
    worker.once("error", (error) => (fault = error));
    // An error may overtake the messages before it; at the exit all of them have come.
    worker.once("exit", () => {
      const broken = modules[results.length];
      settle(broken === undefined ? [] : [faultOf(fault, broken.text)]);
    });
  });
}

const LONGEST_MS = 60_000;
const TOO_LONG = `it takes longer than ${LONGEST_MS / 1000} seconds`;

/** The stack of an uncaught error begins with `FILE:LINE`, the line itself, and a mark below the column. */
function faultOf(error: unknown, text: string): ModuleParsed {
  if (!(error instanceof Error) || error.name !== "SyntaxError")
    return { kind: "unknown", why: whyOf(error) };
  const what = error.message.replace(/\.$/, "");
  const [head = "", ...rest] = (error.stack ?? "").split("\n");
  const line = Number(/:(\d+)$/.exec(head)?.[1] ?? 1);
  const mark = rest.slice(0, 3).find((one) => /^\s*\^+\s*$/.test(one));
  const last = text.split("\n").length;
  return { kind: "broken", what, line: Math.min(line, last), column: (mark?.indexOf("^") ?? 0) + 1 };
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return "the parser ended without a result";
  if (error instanceof RangeError) return "it is nested too deeply";
  if ("code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY") return "it needs too much memory";
  return shownInLine(error.message).replace(/\.$/, "");
}
