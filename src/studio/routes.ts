/** The table of routes: method, path, and what answers it. */
import { deskRoutes } from "./desk-routes.ts";
import { get, type StudioRoute } from "./route.ts";
import type { Streams } from "./streams.ts";

const looks = () => import("./looks.ts");

export function routesOf(streams: Streams): readonly StudioRoute[] {
  return [
    get("project", async () => (await looks()).lookAtProject),
    get("runs", async () => (await looks()).lookAtRuns),
    get("runs/:run", async () => (await looks()).lookAtRun),
    get("runs/:run/frames", async () => (await looks()).lookAtFrames),
    get("runs/:run/at/:seq", async () => (await looks()).lookAtMoment),
    get("runs/:run/why", async () => (await looks()).lookAtWhy),
    get("runs/:run/why/:target", async () => (await looks()).lookAtWhy),
    get("runs/:run/talk", async () => (await looks()).lookAtTalk),
    get("runs/:run/log", async () => (await looks()).lookAtLog),
    get("runs/:run/effects", async () => (await looks()).lookAtEffects),
    get("runs/:run/export", async () => (await looks()).lookAtExport),
    get("runs/:run/replay", async () => (await looks()).lookAtReplay),
    get("effects", async () => (await looks()).lookAtAllEffects),
    get("questions", async () => (await looks()).lookAtQuestions),
    get("worktrees", async () => (await looks()).lookAtWorktrees),
    { method: "GET", path: "stream", answer: streams.open },
    ...deskRoutes,
  ];
}
