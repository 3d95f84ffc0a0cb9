/** A shell in a real pseudo-terminal (util-linux `script`): lines are typed into it, and its screen is read. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { needs } from "./needs.ts";
import { stepsOf, write, type Typed } from "../scripts/pages.ts";
import { until } from "./until.ts";

const hasScript =
  spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") ?? false;
export const terminal = needs(
  hasScript,
  "util-linux `script` is not installed: nothing was typed at a terminal",
);

export type Shell = {
  /** Types a command, waits for the next prompt, and gives what the screen showed and the exit code. */
  readonly type: (
    command: string,
    answers?: readonly Answer[],
  ) => Promise<{ readonly screen: string; readonly code: number }>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** Typed once the question is on the screen. */
export type Answer = { readonly question: string; readonly answer: string };

const PROMPT = /\[exit (\d+)\]> $/;

export async function openShell(cwd: string, env: NodeJS.ProcessEnv): Promise<Shell> {
  const child = spawn("script", ["-qefc", "bash --norc --noprofile --noediting -i", "/dev/null"], {
    cwd,
    env: { ...env, TERM: "xterm", PS1: "[exit $?]> ", PS2: "" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  let gone = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const closed = new Promise<void>((resolve) =>
    child.on("close", () => {
      gone = true;
      resolve();
    }),
  );
  child.stdin.on("error", () => undefined);

  const comes = async (isThere: () => boolean, what: string): Promise<void> => {
    await until(() => gone || isThere(), what);
    assert.ok(isThere(), `${what} did not come. The screen:\n${onScreen(output)}`);
  };
  await comes(() => PROMPT.test(output), "the first prompt");

  const type: Shell["type"] = async (command, answers = []) => {
    output = "";
    child.stdin.write(`${command}\n`);
    let answered = 0;
    for (const { question, answer } of answers) {
      const isAsked = () => onScreen(output.slice(answered)).includes(question);
      await comes(() => isAsked() || PROMPT.test(output), `the question "${question}"`);
      assert.ok(isAsked(), `${command} did not ask "${question}":\n${onScreen(output)}`);
      answered = output.length;
      child.stdin.write(`${answer}\n`);
    }
    await comes(() => PROMPT.test(output), `the end of "${command}"`);
    return { screen: onScreen(output), code: Number(PROMPT.exec(output)?.[1]) };
  };
  await type("stty cols 120 rows 50");
  return {
    type,
    [Symbol.asyncDispose]: async () => {
      child.stdin.write("exit\n");
      await Promise.race([closed, delay(10_000, undefined, { ref: false })]);
      if (!gone) child.kill("SIGKILL");
      await closed;
    },
  };
}

/** Does what a page says, word for word: types what it has typed, writes what it has written, and looks at the screen. */
export async function follow(
  shell: Shell,
  page: string,
  {
    folder,
    heading,
    typed = (command) => command,
  }: {
    /** Where the files of the page are. */
    readonly folder: () => string;
    readonly heading?: string;
    /** What is typed in the place of a command; null: the reader does something else there. */
    readonly typed?: (command: string) => string | null;
  },
): Promise<void> {
  const text = readFileSync(page, "utf8");
  const steps = stepsOf(text).filter((step) => heading === undefined || step.heading === heading);
  assert.ok(steps.length > 0, `there is nothing to do in ${page}`);
  for (const step of steps) {
    if (step.kind === "typed") await typeAll(shell, page, step, typed);
    else write(folder(), step);
  }
}

async function typeAll(
  shell: Shell,
  page: string,
  { line, commands, shown }: Typed,
  typed: (command: string) => string | null,
): Promise<void> {
  const where = `${page}:${line}`;
  const fails = shown.some((one) => /^(?:✗|… waiting)/.test(one));
  let screens = "";
  for (const [index, command] of commands.entries()) {
    const meant = typed(command);
    if (meant === null) continue;
    const isLast = index === commands.length - 1;
    const { screen, code } = await shell.type(meant, isLast ? answersIn(shown) : []);
    screens += screen;
    if (!isLast || !fails) assert.equal(code, 0, `${where}: ${command}\n${screen}`);
    else assert.notEqual(code, 0, `${where}: ${command} is to fail\n${screen}`);
  }
  let rest = screens;
  for (const one of shown.map((line) => line.replace(ANSWER, "$1"))) {
    const found = asPattern(one).exec(rest);
    assert.ok(found !== null, `${where}: the screen does not show\n${one}\nbut\n${screens}`);
    rest = rest.slice(found.index + found[0].length);
  }
}

const ANSWER = /^(.*\[y\/N\]|>) ([\w-]+)$/;

/** A question ends with `[y/N]`, or is on the line above a `>`. */
function answersIn(shown: readonly string[]): readonly Answer[] {
  return shown.flatMap((line, index) => {
    const [, asked, answer] = ANSWER.exec(line.trim()) ?? [];
    if (asked === undefined || answer === undefined) return [];
    const question = asked === ">" ? `${shown[index - 1]?.trim()}\n>` : asked;
    return [{ question: question.split("…").at(-1)!.trim(), answer }];
  });
}

/** `…` is anything, and any run of spaces is any other. */
function asPattern(line: string): RegExp {
  const parts = line
    .trim()
    .split("…")
    .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&").replaceAll(/\s+/g, "\\s+"));
  return new RegExp(parts.join("[^\\n]*?"), "u");
}

/** What is on the screen in the end: carriage returns and cleared lines carried out, colours left out. */
export function onScreen(output: string): string {
  return output
    .split("\n")
    .map((line) => {
      let shown = "";
      let column = 0;
      // oxlint-disable-next-line no-control-regex
      for (const [token] of line.matchAll(/\u001b\[[0-9;?]*[A-Za-z]|\u001b[=>]|[^]/gu)) {
        if (token === "\r") column = 0;
        else if (token.endsWith("K") && token.length > 1) shown = shown.slice(0, column);
        else if (token.startsWith("\u001b")) continue;
        else {
          shown = shown.slice(0, column) + token + shown.slice(column + 1);
          column += 1;
        }
      }
      return shown;
    })
    .join("\n");
}
