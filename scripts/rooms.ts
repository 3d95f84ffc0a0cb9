/**
 * The rooms of src/: what each is for, and what it may import besides itself. `engine/ports` is that one file. A room
 * within a room (`studio/page`) imports nothing of the outer one that its row does not name, nor the outer one of it.
 */
export const ROOMS: { readonly [room: string]: Room } = {
  flow: { about: "The data model. Types and small pure functions.", imports: [] },
  load: { about: "Text in, a Flow or a list of Problems out. Pure.", imports: ["flow"], isClosed: true },
  engine: { about: "The heart: decide and drive. Pure but for the ports it is given.", imports: ["flow"] },
  prompts: { about: "What is said to the model. Pure.", imports: ["flow"] },
  backends: { about: "Models and coding agents.", imports: ["flow", "engine/ports"] },
  boundaries: { about: "What a step may touch.", imports: ["flow", "engine/ports"] },
  effects: { about: "What a run does to the world.", imports: ["flow", "engine/ports"] },
  journal: { about: "Where runs are recorded.", imports: ["flow", "engine/ports"] },
  story: { about: "Folds over a journal: report, tally, replay. Pure.", imports: ["flow", "engine"] },
  tell: {
    about: "What a run says to people and programs: log, audit, transcript, outline. Pure.",
    imports: ["flow", "load", "engine", "story", "prompts"],
  },
  proof: {
    about: "What a flow can do: coverage, generated tests, a hostile model, mutants. Pure.",
    imports: ["flow", "load", "engine", "prompts", "story", "tell", "boundaries/gate"],
  },
  testing: {
    about: "The public kit (`lockstep/testing`).",
    imports: [
      "flow",
      "load",
      "engine",
      "prompts",
      "backends",
      "boundaries",
      "effects",
      "journal",
      "story",
      "tell",
      "proof",
      "run",
    ],
  },
  run: {
    about: "The composition root and the API (`lockstep`).",
    imports: [
      "flow",
      "load",
      "engine",
      "prompts",
      "backends",
      "boundaries",
      "effects",
      "journal",
      "story",
      "tell",
      "proof",
    ],
  },
  serve: {
    about:
      "What the servers of `lockstep studio` and `lockstep mcp` have in common: the commands that they start, the journal that they read, requests that they refuse.",
    imports: ["flow", "load", "engine", "run"],
  },
  studio: {
    about: "The server of `lockstep studio`: a local web page over the journal.",
    imports: ["flow", "load", "engine", "boundaries/redact", "story", "tell", "proof", "run", "serve"],
  },
  "studio/page": {
    about: "The page of `lockstep studio`. Runs in a browser.",
    imports: ["flow", "tell", "studio/wire", "studio/wire-agents", "studio/wire-acts"],
  },
  mcp: {
    about: "The server of `lockstep mcp`: agents as tools of other programs.",
    imports: ["flow", "engine", "backends/peer", "boundaries/redact", "tell", "run", "serve"],
  },
  fleet: {
    about: "The same runs on many machines: submitting, dispatching and driving them with PostgreSQL.",
    imports: ["flow", "engine", "journal", "tell", "run"],
  },
  cli: {
    about: "The command.",
    imports: [
      "flow",
      "load",
      "story",
      "tell",
      "proof",
      "run",
      "testing",
      "studio/index",
      "fleet",
      "mcp/index",
    ],
  },
};

type Room = {
  readonly about: string;
  readonly imports: readonly string[];
  /** Other rooms import only the files beside its floors: each is a door of its own, so that none loads the others. */
  readonly isClosed?: true;
};

/** The room that a file of src/ stands in: `studio/page/main.tsx` stands in `studio/page`. */
export function roomOf(path: string): string | undefined {
  return Object.keys(ROOMS)
    .filter((room) => path.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}
