/** The command's doors without a process for each: the same code that `lockstep` runs, with streams of the test's own. */
import { parseLine } from "../../src/cli/args.ts";
import { createCall, lineOf, type CommandCall, type Host } from "../../src/cli/call.ts";
import { commandNamed, everyFlag, type CliCommand } from "../../src/cli/commands.ts";
import { toFailing } from "../../src/cli/text/failure.ts";
import type { Ran } from "../cli/world.ts";

/** Nobody is at a terminal, and stdin is empty. */
export async function enter(
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  signal = new AbortController().signal,
): Promise<Ran> {
  const said = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof said) => ({
    write: (text: string) => {
      said[name] += text;
      return true;
    },
  });
  const host: Host = {
    stdin: { isTTY: false, open: () => process.stdin },
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    env,
    program: "lockstep",
    cwd: () => cwd,
    stopped: () => signal,
    interruption: () => signal,
    interruptible: (wait) => wait(),
    driving: () => undefined,
  };
  let command: CliCommand | null = null;
  let call: CommandCall | null = null;
  try {
    command = commandNamed(args[0] ?? "");
    const line = command.takesParameters
      ? parseLine(args, { flags: everyFlag(), lenient: true })
      : lineOf(command, args);
    call = createCall(command, args, host, line, () => undefined);
    const perform = await command.load();
    return { code: await perform(call), ...said };
  } catch (error) {
    const { reason, stack, exitCode } = toFailing(error, command, "", cwd);
    return { code: exitCode, stdout: said.stdout, stderr: `${said.stderr}${reason}\n${stack ?? ""}` };
  }
}
