/** What the routes about agents and actions work with: the agents' files, the commands under way, the figures read so far. */
import type { createFigures } from "../run/records/figures.ts";
import type { KnownWhatIfs } from "../run/records/whatif.ts";
import type { Project } from "../run/world/project.ts";
import { createAgentFiles, type AgentFiles } from "../serve/agent-files.ts";
import type { CommandKnowledge } from "../serve/command.ts";
import { createDriver, type Driver, type DriverOptions } from "../serve/drive.ts";
import type { StudioNews } from "./news.ts";

export type Desk = {
  readonly agents: AgentFiles;
  readonly parametersOf: CommandKnowledge["parametersOf"];
  readonly driver: Driver;
  /** Loaded with the first look at figures, and kept. */
  readonly figures: () => Promise<ReturnType<typeof createFigures>>;
  readonly whatIfs: KnownWhatIfs;
};

export function createDesk(
  project: Project,
  { program, load, parametersOf }: CommandKnowledge,
  around: Omit<DriverOptions, "program">,
): Desk {
  let figures: Promise<ReturnType<typeof createFigures>> | null = null;
  return {
    agents: createAgentFiles(project, load),
    parametersOf,
    driver: createDriver({ program, ...around }),
    whatIfs: new Map(),
    figures: async () =>
      await (figures ??= import("../run/records/figures.ts").then((loaded) => loaded.createFigures())),
  };
}

/** The same news, and with them which agents' files change: watched from the first listener on, until the signal. */
export function withFileNews(news: StudioNews, { agents }: Desk, signal: AbortSignal): StudioNews {
  let isWatched = false;
  const watch = async () => {
    try {
      await agents.watch(signal, (changed) => news.say({ type: "files", agents: changed }));
    } catch {
      // The system watches no more files: the page is told nothing, and the next listener tries again.
      isWatched = false;
    }
  };
  return {
    ...news,
    listen: (listener) => {
      if (!isWatched) {
        isWatched = true;
        void watch();
      }
      return news.listen(listener);
    },
  };
}
