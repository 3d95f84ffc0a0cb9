/** Looking at what is outside of a run: whether a file, an address or a module of the project says that it is done. */
import type { Watch } from "../engine/ports.ts";

export type WatchOptions = {
  /** Where paths are meant from. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
};

export function createWatch(_options: WatchOptions): Watch {
  return {
    look: (rule) => Promise.resolve({ met: false, what: `There is nobody to look at a ${rule.kind}` }),
  };
}
