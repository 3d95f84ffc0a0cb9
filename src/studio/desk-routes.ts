/** The routes about agents, actions and many runs. What answers them is loaded with the first request that needs it. */
import { get, post, type StudioRoute } from "./route.ts";

const acts = () => import("./acts.ts");
const forks = () => import("./forks.ts");
const agents = () => import("./agents.ts");
const learn = () => import("./learn.ts");

export const deskRoutes: readonly StudioRoute[] = [
  get("agents", async () => (await agents()).lookAtAgents),
  get("agents/:name", async () => (await agents()).lookAtAgent),
  get("agents/:name/steps/:step", async () => (await agents()).lookAtStep),
  get("agents/:name/boundary", async () => (await agents()).lookAtBoundary),
  get("agents/:name/coverage", async () => (await agents()).lookAtCoverage),
  get("compare/:a/:b", async () => (await learn()).lookAtComparison),
  get("whatif/:name", async () => (await learn()).lookAtWhatIf),
  get("figures", async () => (await learn()).lookAtFigures),
  post("agents/:name/arguments", async () => (await agents()).judgeForm),
  post("runs", async () => (await acts()).actStart),
  post("runs/:run/pause", async () => (await acts()).actPause),
  post("runs/:run/stop", async () => (await acts()).actStop),
  post("runs/:run/resume", async () => (await acts()).actResume),
  post("runs/:run/questions/:question", async () => (await acts()).actAnswer),
  post("runs/:run/judge", async () => (await forks()).judgeFork),
  post("runs/:run/part", async () => (await forks()).actPart),
  post("runs/:run/fork", async () => (await forks()).actFork),
];
