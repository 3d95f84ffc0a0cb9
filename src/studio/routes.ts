/** The table of routes: method, path, and what answers it. */
import { deskRoutes } from "./desk-routes.ts";
import {
  lookAtAllEffects,
  lookAtEffects,
  lookAtExport,
  lookAtFrames,
  lookAtLog,
  lookAtMoment,
  lookAtProject,
  lookAtQuestions,
  lookAtReplay,
  lookAtRun,
  lookAtRuns,
  lookAtTalk,
  lookAtWhy,
  lookAtWorktrees,
} from "./looks.ts";
import type { StudioRoute } from "./route.ts";
import type { Streams } from "./streams.ts";

export function routesOf(streams: Streams): readonly StudioRoute[] {
  return [
    { method: "GET", path: "project", answer: lookAtProject },
    { method: "GET", path: "runs", answer: lookAtRuns },
    { method: "GET", path: "runs/:run", answer: lookAtRun },
    { method: "GET", path: "runs/:run/frames", answer: lookAtFrames },
    { method: "GET", path: "runs/:run/at/:seq", answer: lookAtMoment },
    { method: "GET", path: "runs/:run/why", answer: lookAtWhy },
    { method: "GET", path: "runs/:run/why/:target", answer: lookAtWhy },
    { method: "GET", path: "runs/:run/talk", answer: lookAtTalk },
    { method: "GET", path: "runs/:run/log", answer: lookAtLog },
    { method: "GET", path: "runs/:run/effects", answer: lookAtEffects },
    { method: "GET", path: "runs/:run/export", answer: lookAtExport },
    { method: "GET", path: "runs/:run/replay", answer: lookAtReplay },
    { method: "GET", path: "effects", answer: lookAtAllEffects },
    { method: "GET", path: "questions", answer: lookAtQuestions },
    { method: "GET", path: "worktrees", answer: lookAtWorktrees },
    { method: "GET", path: "stream", answer: streams.open },
    ...deskRoutes,
  ];
}
