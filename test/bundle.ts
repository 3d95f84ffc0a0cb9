/** A program of the tests as one file: processes that live for a moment should not take longer to begin than to die. */
import { spawnSync } from "node:child_process";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

/** Gives the file; `name` is a path below this folder without its ending, `folder` is where it goes. */
export async function bundled(name: string, folder: string): Promise<string> {
  await build({
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    input: `test/${name}.ts`,
    platform: "node",
    external: [/^node:/, /^@ai-sdk\//, /^@anthropic-ai\//, /^@agentclientprotocol\//],
    output: { dir: folder, format: "esm" },
    logLevel: "silent",
  });
  return join(folder, `${basename(name)}.js`);
}

/** What Node keeps of a program it has compiled: those that are killed cannot leave it behind. */
export function warmed(file: string, args: readonly string[], folder: string): NodeJS.ProcessEnv {
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, "compiled") };
  spawnSync(process.execPath, [file, ...args], { env, stdio: "ignore" });
  return env;
}
