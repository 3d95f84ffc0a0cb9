/** The agents of a project as their files hold them now: loaded once for every state of the files, and watched. */
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import type { FileTree } from "../flow/files.ts";
import type { LoadedAgent } from "../run/load.ts";
import { repeatOnChange } from "../run/watch/files.ts";
import { createFiles } from "../run/world/files.ts";
import { listAgents, type Project } from "../run/world/project.ts";
import { RequestRefusal } from "./refusal.ts";

export type AgentFiles = {
  readonly names: () => readonly string[];
  /** AGENT_UNKNOWN where the project has none of that name. */
  readonly load: (name: string) => Promise<LoadedAgent>;
  /** Says which agents changed, within a moment, until the signal. An agent that is new or gone has changed. */
  readonly watch: (signal: AbortSignal, changed: (agents: readonly string[]) => void) => Promise<void>;
};

type Load = (name: string, files: FileTree) => Promise<LoadedAgent>;
type Known = {
  readonly loaded: Promise<LoadedAgent>;
  /** What was read or looked for, and how each file stood. */
  readonly stamps: () => ReadonlyMap<string, string>;
};

export function createAgentFiles(project: Project, load: Load): AgentFiles {
  const known = new Map<string, Known>();

  const isCurrent = ({ stamps }: Known): boolean =>
    [...stamps()].every(([path, stamp]) => stampOf(project.root, path) === stamp);

  const loadNow = (name: string): Known => {
    const files = createFiles(project.root);
    const stamps = new Map<string, string>();
    const stamped: FileTree = {
      list: (folder) => {
        // A folder is watched by the name of a file in it.
        for (const path of [folder, join(folder, "x")]) stamps.set(path, stampOf(project.root, path));
        return files.list(folder);
      },
      read: (path) => {
        stamps.set(path, stampOf(project.root, path));
        return files.read(path);
      },
    };
    const one: Known = { loaded: load(name, stamped), stamps: () => stamps };
    // What failed is tried again by the next request.
    one.loaded.catch(() => known.delete(name));
    known.set(name, one);
    return one;
  };

  const current = (name: string): Known => {
    const before = known.get(name);
    return before !== undefined && isCurrent(before) ? before : loadNow(name);
  };

  const names = () => listAgents(project);

  return {
    names,
    load: async (name) => {
      if (!names().includes(name))
        throw new RequestRefusal(404, "AGENT_UNKNOWN", `This project has no agent "${name}".`);
      return await current(name).loaded;
    },
    watch: async (signal, changed) => {
      const seen = new Map<string, Known>();
      let isFirst = true;
      await repeatOnChange(project.root, signal, async () => {
        const there = names();
        const gone = [...seen.keys()].filter((name) => !there.includes(name));
        const other: string[] = [];
        for (const name of there) {
          const one = current(name);
          await one.loaded.catch(() => undefined);
          if (seen.get(name) !== one) other.push(name);
          seen.set(name, one);
        }
        for (const name of gone) seen.delete(name);
        if (!isFirst && gone.length + other.length > 0) changed([...other, ...gone].toSorted());
        isFirst = false;
        const folder = relative(project.root, project.agentsDir);
        return [join(folder, "x"), ...[...seen.values()].flatMap((one) => Array.from(one.stamps().keys()))];
      });
    },
  };
}

/** Another one means that the file may hold something else. */
function stampOf(root: string, path: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(join(root, path), { bigint: true });
    return `${ino}:${size}:${mtimeNs}`;
  } catch {
    return "";
  }
}
