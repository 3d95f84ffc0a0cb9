/** Bash: one command in a fresh shell, run by whatever runs processes for us. */
import { SHELL } from "../../flow/machine/programs.ts";
import { defineTool, done, failedCall, type RunToolProcess, type Tool } from "./tool.ts";

export function bashTool(): Tool {
  return defineTool<{ command: string; timeout?: number; description?: string }>({
    name: "Bash",
    description:
      "Runs a shell command in the working directory. Each call is a fresh shell, and what it leaves running is ended.",
    required: ["command"],
    properties: {
      command: { type: "string", minLength: 1, description: "The command" },
      timeout: {
        type: "integer",
        minimum: 1,
        description: `Milliseconds it may take; ${DEFAULT_TIMEOUT_MS} if not given, at most ${MAX_TIMEOUT_MS}`,
      },
      description: { type: "string", description: "What the command is for, in a few words" },
    },
    run: async ({ command, timeout = DEFAULT_TIMEOUT_MS }, { cwd, env, exec, programs }, signal) => {
      const timeoutMs = Math.min(timeout, MAX_TIMEOUT_MS);
      // Models write for bash; where there is none, sh does its best.
      const bash = programs?.bash ?? null;
      const argv = bash === null ? [SHELL, "-c", command, "sh"] : [bash, "-c", command, "bash"];
      const result = await exec({
        command: argv,
        cwd,
        env: env(),
        timeoutMs,
        maxOutputBytes: STREAM_BYTES,
        signal,
      });
      const ending = endingOf(result, timeoutMs);
      const content = [result.stdout.trimEnd(), result.stderr.trimEnd(), ending]
        .filter((part) => part !== "")
        .join("\n");
      return ending === "" ? done(content || "[no output]") : failedCall(content);
    },
  });
}

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
/** Both streams with their notes fit into what a model is shown. */
const STREAM_BYTES = 31 * 1024;

function endingOf(result: Awaited<ReturnType<RunToolProcess>>, timeoutMs: number): string {
  if (result.aborted) return "[interrupted]";
  if (result.timedOut) return `[stopped after ${timeoutMs} ms]`;
  if (result.exitCode === null) return `[ended by ${result.signal ?? "a signal"}]`;
  return result.exitCode === 0 ? "" : `[exit code ${result.exitCode}]`;
}
