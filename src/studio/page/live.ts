/** What the page knows of all runs: a fold over the messages of the server's stream. */
import type { RunLine, RunsDocument, StreamMessage } from "../wire.ts";

export type Live = {
  /** `refused`: the token is not that of this server. */
  readonly connection: "connecting" | "live" | "lost" | "refused";
  /** When the server was heard last, in epoch milliseconds; null: not yet. */
  readonly heardAt: number | null;
  readonly began: number | null;
  readonly cursor: string | null;
  /** Grows when everything has to be asked for again. */
  readonly epoch: number;
  readonly total: number;
  /** By run; in the order in which they came. */
  readonly runs: ReadonlyMap<string, RunLine>;
  readonly gone: ReadonlySet<string>;
  readonly questions: { readonly open: number; readonly runs: readonly string[]; readonly version: number };
  /** By agent: grows with each change of its files. */
  readonly files: ReadonlyMap<string, number>;
};

export const UNHEARD: Live = {
  connection: "connecting",
  heardAt: null,
  began: null,
  cursor: null,
  epoch: 0,
  total: 0,
  runs: new Map(),
  gone: new Set(),
  questions: { open: 0, runs: [], version: 0 },
  files: new Map(),
};

export function hear(live: Live, message: StreamMessage): Live {
  switch (message.type) {
    case "hello": {
      const isOther = live.began !== null && live.began !== message.began;
      return { ...live, connection: "live", began: message.began, ...(isOther && { epoch: live.epoch + 1 }) };
    }
    case "runs":
      return { ...live, total: message.total, runs: withRows(live.runs, message.runs) };
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
    case "reset":
      return { ...live, epoch: live.epoch + 1 };
    case "frames":
      return live;
  }
}

/** Rows that were asked for never replace newer ones that the stream brought meanwhile. */
export function withPage(live: Live, page: RunsDocument): Live {
  const older = page.runs.filter((row) => {
    const known = live.runs.get(row.run);
    return (
      known === undefined ||
      known.events < row.events ||
      (known.events === row.events && known.facts === null)
    );
  });
  return { ...live, total: page.total, cursor: live.cursor ?? page.cursor, runs: withRows(live.runs, older) };
}

function withRows(
  runs: ReadonlyMap<string, RunLine>,
  rows: readonly RunLine[],
): ReadonlyMap<string, RunLine> {
  if (rows.length === 0) return runs;
  const next = new Map(runs);
  // A row of the stream may come without what an earlier one had read.
  for (const row of rows)
    next.set(row.run, row.facts === null ? { ...row, facts: runs.get(row.run)?.facts ?? null } : row);
  return next;
}
