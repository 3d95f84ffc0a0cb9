/** Rules about the values that a condition gives to its validator, and about the names that stand for them. */
import { fillPath, plain, SHELL_REFERENCE, type Params } from "../registry/guards.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { partOf, type At } from "./loaded.ts";
import type { ValidatorSource } from "../registry/registry-shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { error, warning, type Codes, type Tell } from "./rule.ts";

export const codes = {
  "CHECK-PARAM": error(
    "unusable parameter",
    "Values are passed to commands as shell variables, so a name must not change how commands run, and a value must fit into a variable.",
  ),
  "CHECK-VALUE": warning(
    "value not supplied",
    "The shell replaces a missing value by an empty string, which changes the meaning of the command.",
  ),
} satisfies Codes;

/** One condition, with the validator it asks for. */
export type ConditionUse = {
  readonly name: string;
  readonly validator: ValidatorSource;
  readonly params: Params;
  /** The condition's own place. */
  readonly place: At;
};

export function checkValues(asked: ConditionUse, tell: Tell): void {
  const { type, command, path } = asked.validator;
  if (type === "command" && command !== undefined) {
    checkVariables(asked, tell);
    checkReferences(asked, command, tell);
  }
  if (type === "file" && path !== undefined) checkPath(asked, path, tell);
}

const NAME = /^[A-Za-z_]\w*$/;

/** Obeyed by every program while it is loaded, also by one that confines others. */
export const LOADER = /^(?:(?:LD|DYLD|LOCKSTEP|MALLOC)_\w*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH)$/;

/** Variables by which the shell, or what a command is made of decide what is run; and the shell's own. */
const RESERVED = new RegExp(
  `^(?:${[
    "PATH|HOME|IFS|ENV|SHELL|SHELLOPTS|CDPATH|PWD|OLDPWD|PS[0-9]|PROMPT_COMMAND|TMPDIR|PAGER|EDITOR|VISUAL",
    "_|PPID|E?UID|OPTIND|LINENO|RANDOM|SECONDS|GROUPS",
    "(?:BASH|GIT_|NODE_|npm_|NPM_|PYTHON|PERL|RUBY|JAVA_|XDG_|SSH_)\\w*",
  ].join("|")})$`,
);

/** What the system takes as one variable. */
const MAX_VALUE = 100_000;

function checkVariables({ params, place, name }: ConditionUse, tell: Tell): void {
  for (const [key, value] of params) {
    const fault = variableFault(key, plain(value));
    if (fault === null) continue;
    tell({
      code: "CHECK-PARAM",
      ...partOf(place, "params", key),
      message: `The parameter "${key}" of the validator "${name}" cannot be a shell variable: ${fault.why}.`,
      fix: fault.fix,
    });
  }
}

function variableFault(key: string, value: string): { readonly why: string; readonly fix: string } | null {
  const fix = "Give it another name, here and in the command.";
  if (!NAME.test(key)) return { why: "a name may only contain letters, digits and _", fix };
  if (RESERVED.test(key) || LOADER.test(key))
    return { why: "the shell uses this variable, or it changes which programs run", fix };
  if (value.includes("\0")) return { why: "its value holds a NUL character", fix: "Remove it." };
  if (value.length <= MAX_VALUE) return null;
  return { why: `its value is longer than ${MAX_VALUE} characters`, fix: "Write it to a file." };
}

/** A name in capitals is taken for a variable of the environment, and one that the command sets itself is its own. */
function checkReferences(asked: ConditionUse, command: string, tell: Tell): void {
  const { params, place, name } = asked;
  const references = [...referencesIn(command)];
  const isElsewhere = (key: string) => /^[A-Z_][A-Z0-9_]*$/.test(key) || setsVariable(command, key);
  for (const key of new Set(references.map((reference) => reference.key))) {
    if (params.has(key) || isElsewhere(key)) continue;
    tell({
      code: "CHECK-VALUE",
      ...place,
      message: `The command of the validator "${name}" reads \${${key}}, but the condition gives no value for it.${didYouMean(key, params.keys())}`,
      fix: `Add "${key}" to the params of the condition, or write \${${key}:-} if it may be empty.`,
    });
  }
  const literal = references.find(({ key, isLiteral }) => isLiteral && params.has(key));
  if (literal === undefined) return;
  tell({
    code: "CHECK-VALUE",
    ...place,
    pointer: pointerOf(["validators", name, "command"]),
    message: `\${${literal.key}} in the command of the validator "${name}" is in single quotes, where the shell does not replace it.`,
    fix: `Write "\${${literal.key}}", in double quotes: the value is then passed unchanged, whatever it contains.`,
  });
}

/** A path is read by no shell: what is not given stays there as it is written. */
function checkPath({ params, place, name }: ConditionUse, path: string, tell: Tell): void {
  for (const [, key = ""] of path.matchAll(SHELL_REFERENCE)) {
    if (params.has(key)) continue;
    tell({
      code: "CHECK-VALUE",
      severity: "error",
      ...place,
      message: `The path of the validator "${name}" holds \${${key}}, but the condition gives no value for it.${didYouMean(key, params.keys())}`,
      fix: `Add "${key}" to the params of the condition.`,
    });
  }
  const filled = fillPath(path, params);
  const way = joinPath("", filled);
  if (way !== "" && !escapesProject(way)) return;
  tell({
    code: "AC-SERVICE-003",
    ...place,
    pointer: pointerOf(["validators", name, "path"]),
    message: `The path "${filled}" of the validator "${name}" ${way === "" ? "names no file" : "leads out of the working directory"}.`,
    fix: "Write a path below the working directory.",
  });
}

type Reference = { readonly key: string; readonly isLiteral: boolean };

/** Every `${key}` of a command, and whether it stands in single quotes. What is escaped or in a comment is none. */
function* referencesIn(command: string): Generator<Reference> {
  let quote = "";
  const tokens = /\\[\s\S]|['"]|(?<![^\s;&|(])#[^\n]*|\$\{([A-Za-z_]\w*)\}/g;
  for (let match = tokens.exec(command); match !== null; match = tokens.exec(command)) {
    const [token, key] = match;
    if (key !== undefined) yield { key, isLiteral: quote === "'" };
    else if (token === quote) quote = "";
    else if (token === "'" || token === '"') quote ||= token;
    // Within quotes nothing but their end, a value, and in double ones a backslash means anything.
    else if (quote === "'" || (quote === '"' && token.startsWith("#"))) tokens.lastIndex = match.index + 1;
  }
}

function setsVariable(command: string, key: string): boolean {
  return new RegExp(`\\b${key}=|\\bfor\\s+${key}\\b|\\bread\\b[^;&|\\n]*\\b${key}\\b`).test(command);
}
