/** `lockstep resume RUN` */
import { resume } from "../run/index.ts";
import type { Call } from "./call.ts";
import { conduct } from "./conduct.ts";

export async function resumeRun(call: Call): Promise<number> {
  const [run = ""] = call.words;
  return await conduct(call, async (options) => await resume({ ...options, run }));
}
