/** Modules that an agent names: what only a parser can judge of them, and the problems when it does. */
import type { Files } from "../flow/files.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { partsOf } from "../flow/rules.ts";
import type { Problem } from "../flow/problem.ts";
import { emptyDocument, readText } from "./text/document.ts";
import type { Finding } from "./rules/rule.ts";
import { toProblem } from "./codes.ts";
import { defaultNames, type Named } from "./text/object-names.ts";
import { escapesProject, joinPath, parentFolder } from "./text/paths.ts";
import { placer, type Place } from "../flow/text/places.ts";
import { textDocument } from "./text/prompt-places.ts";
import { didYouMean } from "../flow/text/suggest.ts";

export type ModuleToTry = { readonly file: string; readonly text: string };

/** The modules that a run of the flow may start: hooks, verdicts, handlers of actions. */
export function modulesOf({ hooks, stop, settings }: Flow, files: Files): readonly ModuleToTry[] {
  const verdicts = partsOf(stop).flatMap((part) => (part.kind === "module" ? [part.module] : []));
  const handlers = Object.values(settings.actions.modules ?? {});
  const all = [...(hooks === undefined ? [] : [hooks]), ...verdicts, ...handlers];
  return [...new Set(all.map(({ file }) => file))].flatMap((file) => moduleAt(file, files));
}

function moduleAt(file: string, files: Files): readonly ModuleToTry[] {
  const read = readText(files, file);
  return read.kind === "text" ? [{ file, text: read.text }] : [];
}

export function brokenModule({ file }: ModuleToTry, what: string, place: Place): Problem {
  return atOnce({
    code: "MODULE-SYNTAX",
    document: { file, value: null, place: () => place },
    message: `${file} is not a valid module: ${what}.`,
    fix: "Fix the code at this position.",
  });
}

export function unparsedModule({ file }: ModuleToTry, why: string): Problem {
  return unparsed(file, `could not be parsed: ${why}`, "Simplify the module, and check again.");
}

/** `check` looks at so many modules of an agent, and at so many imports of each; `left` are those that it did not parse. */
export function skippedModules(left: readonly string[], most: number): readonly Problem[] {
  const [file] = left;
  if (file === undefined) return [];
  const more = left.length === 1 ? "was" : `and ${left.length - 1} more were`;
  return [unparsed(file, `${more} not parsed: check parses at most ${most} modules of an agent`)];
}

function unparsed(file: string, what: string, fix = "Combine the code into fewer modules."): Problem {
  const document = emptyDocument(file);
  return atOnce({ code: "MODULE-UNPARSED", document, message: `${file} ${what}.`, fix });
}

/** What a module that can be parsed imports from the project: further modules to look at, and what is not there. */
export function importedBy(
  { file, text }: ModuleToTry,
  imports: readonly string[],
  files: Files,
): { readonly further: readonly ModuleToTry[]; readonly problems: readonly Problem[] } {
  const further: ModuleToTry[] = [];
  const problems: Problem[] = [];
  const ofProject = imports.filter((specifier) => /^\.{1,2}\//.test(specifier) && !/[?#%]/.test(specifier));
  if (ofProject.length > MOST_NAMES) {
    const what = `imports ${ofProject.length} modules of the project; check only looked at the first ${MOST_NAMES}`;
    problems.push(unparsed(file, what));
  }
  for (const specifier of ofProject.slice(0, MOST_NAMES)) {
    const path = joinPath(parentFolder(file), specifier);
    if (escapesProject(path)) continue;
    if (files.read(path).kind === "missing") problems.push(missingImport(file, text, specifier, path));
    else if (/\.m?[jt]s$/.test(path)) further.push(...moduleAt(path, files));
  }
  return { further, problems };
}

function missingImport(file: string, text: string, specifier: string, path: string): Problem {
  const at = ['"', "'"].map((quote) => text.indexOf(quote + specifier + quote)).find((place) => place !== -1);
  return atOnce({
    code: "MODULE-IMPORT",
    document: textDocument(file, placer(text), at ?? 0),
    message: `${file} imports "${specifier}", but there is no ${path}.`,
    fix: `Create ${path}, or correct the import.`,
  });
}

const HOOKS = ["setup", "checkGate", "assert", "exit", "next"];
const FOR_ALL = ["grantStageTool", "guard"];

/** Names in hooks.mjs that nothing calls. Only of a text that can be parsed. */
export function strayHooks({ file, text }: ModuleToTry, { steps }: Flow): readonly Problem[] {
  if (text.length > MOST_READ) return [];
  const placeOf = placer(text);
  const known = [...Object.keys(steps), ...FOR_ALL];
  const report = ({ name, at }: Named, message: string, fix: string, owner: readonly StepId[] = []) =>
    atOnce({
      code: "HOOK-UNKNOWN",
      document: textDocument(file, placeOf, at),
      ...(owner.length > 0 && { steps: owner }),
      message: `${message}, so "${name}" is never called.`,
      fix,
    });
  return (defaultNames(text)?.names ?? []).slice(0, MOST_NAMES).flatMap((one) => {
    if (!known.includes(one.name)) {
      const message = `${file} has hooks for the stage "${one.name}", but there is no such stage${withoutMark(didYouMean(one.name, known))}`;
      return [report(one, message, `Use one of: ${known.join(", ")}.`)];
    }
    return (FOR_ALL.includes(one.name) ? [] : (one.members?.names ?? []))
      .filter(({ name }) => !HOOKS.includes(name))
      .slice(0, MOST_NAMES)
      .map((hook) => {
        const message = `${file} has "${hook.name}" for the stage "${one.name}", which is not a hook${withoutMark(didYouMean(hook.name, HOOKS))}`;
        return report(hook, message, `Use one of: ${HOOKS.join(", ")}.`, [one.name]);
      });
  });
}

const MOST_READ = 1_000_000;
const MOST_NAMES = 100;

/** ` Did you mean "x"?` within a sentence. */
function withoutMark(hint: string): string {
  return hint === "" ? "" : ` (${hint.trim().replace(/^D/, "d").replace(/\?$/, "")}?)`;
}

function atOnce(finding: Omit<Finding, "pointer">): Problem {
  return toProblem({ ...finding, pointer: "" }, null);
}
