#!/usr/bin/env node
/**
 * What is loaded first: it only makes Node keep compiled code, so that all that follows comes out of that cache. Both
 * this and the front door must load on any Node.
 */
import module from "node:module";
import { isAbsolute, join } from "node:path";

keepCompiled(process.env);
void import("./door.ts");

/** Saves a tenth of a short run, and half of one from source. In the user's own folder, because it is run as code. */
function keepCompiled({ XDG_CACHE_HOME, HOME }: NodeJS.ProcessEnv): void {
  const folder = XDG_CACHE_HOME || (HOME ? join(HOME, ".cache") : "");
  // Node tries for ever to make a folder where none can be made, as below /proc.
  if (isAbsolute(folder) && !folder.startsWith("/proc/") && !folder.startsWith("/dev/"))
    // Missing in Deno.
    module.enableCompileCache?.(join(folder, "lockstep", "compiled"));
}
