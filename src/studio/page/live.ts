/** What the page knows of all runs: a fold over the messages of the server's stream. */
import type { RunLine, RunsDocument, StreamMessage } from "../wire.ts";

export type Live = {
  /** `refused`: the token is not that of this server. `crowded`: other windows have all streams, and none passes them on. */
  readonly connection: "connecting" | "live" | "lost" | "refused" | "crowded";
  /** Another window reads the stream for this one: frames of the run that is looked at do not come with it. */
  readonly isShared: boolean;
  /** When the server was heard last, in epoch milliseconds; null: not yet. */
  readonly heardAt: number | null;
  readonly began: number | null;
  readonly cursor: string | null;
  /** Grows when nothing that is known holds any more. */
  readonly epoch: number;
  /** Grows when everything that is shown has to be asked for again. */
  readonly round: number;
  readonly total: number;
  /** By run; in the order in which they came. */
  readonly runs: ReadonlyMap<string, RunLine>;
  readonly gone: ReadonlySet<string>;
  /** Runs that nothing has named since everything has to be asked for again: they may not be recorded any more. */
  readonly doubtful: ReadonlySet<string>;
  /** Why the recorded runs cannot be read at the moment; null: they can. */
  readonly problem: string | null;
  readonly questions: { readonly open: number; readonly runs: readonly string[]; readonly version: number };
  /** By agent: grows with each change of its files. */
  readonly files: ReadonlyMap<string, number>;
};

export const UNHEARD: Live = {
  connection: "connecting",
  isShared: false,
  heardAt: null,
  began: null,
  cursor: null,
  epoch: 0,
  round: 0,
  total: 0,
  runs: new Map(),
  gone: new Set(),
  doubtful: new Set(),
  problem: null,
  questions: { open: 0, runs: [], version: 0 },
  files: new Map(),
};

export function hear(live: Live, message: StreamMessage): Live {
  switch (message.type) {
    case "hello": {
      const isOther = live.began !== null && live.began !== message.began;
      const now = { ...(isOther ? again(live) : live), connection: "live" } as const;
      // A server that can read its journal says nothing about it.
      return { ...now, began: message.began, problem: null };
    }
    case "runs":
      return withRows({ ...live, total: message.total }, message.runs);
    case "questions": {
      const { open, runs } = message;
      return { ...live, questions: { open, runs, version: live.questions.version + 1 } };
    }
    case "files":
      return {
        ...live,
        files: new Map([
          ...live.files,
          ...message.agents.map((agent) => [agent, (live.files.get(agent) ?? 0) + 1] as const),
        ]),
      };
    case "gone": {
      const gone = new Set([...live.gone, ...message.runs]);
      const runs = new Map([...live.runs].filter(([run]) => !gone.has(run)));
      return { ...live, gone, runs, total: Math.max(0, live.total - (live.runs.size - runs.size)) };
    }
    case "journal":
      return { ...live, problem: message.problem };
    case "reset":
      return again(live);
    case "frames":
      return live;
  }
}

function again(live: Live): Live {
  return { ...askedAgain(live), epoch: live.epoch + 1 };
}

/** Something may have been missed: files that changed, runs that were removed. */
export function askedAgain(live: Live): Live {
  return { ...live, round: live.round + 1, doubtful: new Set(live.runs.keys()) };
}

/** Every page was asked for: what none of them named is not recorded any more. */
export function withoutDoubtful(live: Live): Live {
  if (live.doubtful.size === 0) return live;
  const runs = new Map([...live.runs].filter(([run]) => !live.doubtful.has(run)));
  return { ...live, runs, doubtful: new Set() };
}

/** Rows that were asked for never replace newer ones that the stream brought meanwhile. */
export function withPage(live: Live, page: RunsDocument): Live {
  const isNews = (row: RunLine) => {
    const known = live.runs.get(row.run);
    return (
      known === undefined ||
      live.doubtful.has(row.run) ||
      known.events < row.events ||
      (known.events === row.events && known.facts === null)
    );
  };
  const rows = page.runs.map((row) => (isNews(row) ? row : live.runs.get(row.run)!));
  return withRows({ ...live, total: page.total, cursor: live.cursor ?? page.cursor }, rows);
}

function withRows(live: Live, rows: readonly RunLine[]): Live {
  if (rows.length === 0) return live;
  const runs = new Map(live.runs);
  // A row of the stream may come without what an earlier one had read.
  for (const row of rows)
    runs.set(row.run, row.facts === null ? { ...row, facts: runs.get(row.run)?.facts ?? null } : row);
  const named = new Set(rows.map(({ run }) => run));
  return { ...live, runs, doubtful: new Set([...live.doubtful].filter((run) => !named.has(run))) };
}
