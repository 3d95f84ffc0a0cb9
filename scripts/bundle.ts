/** Bundles the command into FOLDER/dist/bin: main.js, what it loads on demand, and bench.js, which `lockstep bench` loads. */
import { fileURLToPath } from "node:url";
import { build, type BuildOptions, type OutputOptions } from "rolldown";

export async function bundleCommand(
  folder: string,
  output: OutputOptions = {},
  logLevel: BuildOptions["logLevel"] = "silent",
): Promise<void> {
  await build({
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    input: { main: "src/cli/main.ts", bench: "bench/measure.ts" },
    platform: "node",
    // Optional parts are loaded from where the user installed them, if at all.
    external: [/^node:/, /^@ai-sdk\//],
    output: { dir: `${folder}/dist/bin`, format: "esm", ...output },
    logLevel,
  });
}
