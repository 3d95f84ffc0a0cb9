/**
 * Marks the functions that a short run calls, so that V8 compiles them together with their file and Node's compile cache
 * keeps them. Unmarked functions are parsed and compiled again at every start: a fifth of a run of three steps.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseAst } from "rolldown/parseAst";

type Range = { readonly start: number; readonly end: number };

/** What Node writes for NODE_V8_COVERAGE. */
type Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly count: number;
      }[];
    }[];
  }[];
};

/** Rewrites the files of the bundle in `bin`, which lies in a package with its templates. */
export function compileEagerly(bin: string): void {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-bundle-"));
  try {
    for (const [file, called] of calledIn(bin, folder)) {
      const path = join(bin, file);
      writeFileSync(path, inAscii(marked(readFileSync(path, "utf8"), called)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** File → the functions in it that a check and a run of each kind of agent call. */
function calledIn(bin: string, folder: string): ReadonlyMap<string, readonly Range[]> {
  const coverage = join(folder, "coverage");
  const lockstep = (env: NodeJS.ProcessEnv, ...args: readonly string[]) => {
    const { status, stderr } = spawnSync(process.execPath, [join(bin, "main.js"), ...args, "--json"], {
      cwd: folder,
      encoding: "utf8",
      env: { HOME: folder, ...env },
    });
    if (status !== 0) throw new Error(`lockstep ${args.join(" ")} ended with ${status}: ${stderr}`);
  };
  lockstep({}, "init", "steps");
  lockstep({}, "init", "stages", "--stages");
  const env = { NODE_V8_COVERAGE: coverage };
  lockstep(env, "check");
  for (const name of ["steps", "stages"])
    lockstep(env, "run", name, "--topic", "tides", "--script", `.agent/${name}/script.yaml`);

  const called = new Map<string, Range[]>(readdirSync(bin).map((file) => [file, []]));
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), "utf8")) as Coverage;
    for (const { url, functions } of result) {
      for (const { ranges } of url.startsWith("file:") ? functions : []) {
        const { startOffset: start, endOffset: end, count } = ranges[0]!;
        if (count > 0) called.get(basename(url))?.push({ start, end });
      }
    }
  }
  return called;
}

type AstNode = Range & {
  readonly type: string;
  readonly kind?: string;
  readonly method?: boolean;
  readonly id?: (Range & { readonly name: string }) | null;
};

/**
 * V8 compiles a function expression at once that is the first thing in a pair of parentheses. A declaration at the top
 * becomes such an expression, before everything that may call it.
 */
function marked(code: string, called: readonly Range[]): string {
  const { body } = parseAst(code, { sourceType: "module" }) as unknown as {
    readonly body: readonly AstNode[];
  };
  const functions = functionsIn(body);
  const wanted = new Set(called.flatMap((range) => functionAt(range, functions)));
  const expressions = [...wanted].filter(({ type }) => type !== "FunctionDeclaration");
  const marks = expressions
    .flatMap(({ start, end }) => [
      { at: start, text: "(" },
      { at: end, text: ")" },
    ])
    .toSorted((a, b) => a.at - b.at);
  const between = (from: number, to: number): string => {
    let text = "";
    let done = from;
    for (const mark of marks) {
      if (mark.at < from || mark.at > to) continue;
      text += code.slice(done, mark.at) + mark.text;
      done = mark.at;
    }
    return text + code.slice(done, to);
  };

  const head = body.findLast(({ type }) => type === "ImportDeclaration")?.end ?? code.search(/^(?!#!)/m);
  let [first, rest, done] = ["", "", head];
  for (const { type, start, end, id } of body) {
    const isMoved = type === "FunctionDeclaration" && [...wanted].some((node) => node.start === start);
    if (!isMoved) continue;
    first += `const ${id!.name} = (${code.slice(start, id!.start).trimEnd()}${between(id!.end, end)});\n`;
    rest += between(done, start);
    done = end;
  }
  return `${code.slice(0, head)}\n${first}${rest}${between(done, code.length)}`;
}

/** One letter that is not ASCII makes V8 keep the whole file with two bytes for each, which takes longer to read. */
function inAscii(code: string): string {
  const isOneAsWritten = /\\[^\0-\x7f]|String\.raw`[^`]*[^\0-\x7f]/.test(code);
  if (isOneAsWritten) return code;
  return code.replaceAll(
    /[^\0-\x7f]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** By where they end; those that end together are nested, the outer one first. Methods cannot be put in parentheses. */
function functionsIn(body: readonly AstNode[]): ReadonlyMap<number, readonly AstNode[]> {
  const found = new Map<number, AstNode[]>();
  const visit = (value: unknown, isMethod: boolean): void => {
    if (typeof value !== "object" || value === null) return;
    const node = value as AstNode;
    if (/^(?:Function(?:Expression|Declaration)|ArrowFunctionExpression)$/.test(node.type) && !isMethod)
      found.set(node.end, [...(found.get(node.end) ?? []), node]);
    const ownsMethod =
      node.type === "MethodDefinition" ||
      (node.type === "Property" && (node.method === true || node.kind !== "init"));
    for (const [key, member] of Object.entries(node)) visit(member, ownsMethod && key === "value");
  };
  visit(body, false);
  return found;
}

/** V8 counts from the parameters or from the word `function`, an AST from the word `async`. */
function functionAt(
  { start, end }: Range,
  functions: ReadonlyMap<number, readonly AstNode[]>,
): readonly AstNode[] {
  const node = functions.get(end)?.findLast((one) => one.start <= start);
  return node === undefined ? [] : [node];
}
