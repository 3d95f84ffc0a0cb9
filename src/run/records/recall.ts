/** What an earlier stretch of a run left behind: noted entry by entry, so that no entry has to be held for it. */
import { isUndriven } from "../../engine/drive/rest.ts";
import type { BackendSpec, Entry, Event, Tree, Worktree } from "../../flow/event.ts";
import { defined, isObject, type Json } from "../../flow/json.ts";
import type { Journal } from "../../engine/ports.ts";
import { RecordDamaged } from "../../journal/errors.ts";

export type Recalled = {
  readonly started: Event & { type: "run.started" };
  readonly startedAt: number;
  /** The newest event. */
  readonly last: Event;
  readonly cwd: string;
  readonly worktree: Worktree | undefined;
  /** The model it asked last, and how far that had come. */
  readonly spec: BackendSpec;
  readonly marks: readonly Json[];
  /** A model was asked before: what it was granted may be left to do. */
  readonly isAsked: boolean;
  /** How its commands were held when it was last driven; false where an earlier version recorded it. */
  readonly wasConfined: boolean;
  /** Any step of it was begun: its worktree was whole then. */
  readonly hasWorked: boolean;
  readonly isUndriven: boolean;
  /** It came as a file and has not been accepted since. */
  readonly isImported: boolean;
  /** The newest files that it names; null: none yet, and the source has them. */
  readonly tree: Tree | null;
  /** Which entry names them, counted from 1; 0: none. */
  readonly treeAt: number;
};

export type Recall = {
  /** The next entry. */
  readonly add: (entry: Entry) => void;
  readonly recalled: () => Recalled;
};

export function createRecall(): Recall {
  let count = 0;
  let started: Event | undefined;
  let startedAt = 0;
  let last: Event | undefined;
  let spec: BackendSpec | undefined;
  let marks: Json[] = [];
  let sandbox: { readonly confined: boolean } | undefined;
  let [isAsked, hasWorked] = [false, false];
  let [resumedAt, acceptedAt] = [0, 0];
  let newest: Tree | null = null;
  let treeAt = 0;
  return {
    add({ at, event, tree }) {
      count += 1;
      if (started === undefined) [started, startedAt] = [event, at];
      last = event;
      if (tree !== undefined) [newest, treeAt] = [tree, count];
      if (event.type === "step.answered") {
        hasWorked = true;
        const { reply } = event;
        if ("mark" in reply && reply.mark !== undefined) marks.push(reply.mark);
        return;
      }
      isAsked ||= event.type === "step.asked";
      hasWorked ||= event.type.startsWith("step.");
      if (event.type === "run.started" || event.type === "run.resumed") ({ sandbox } = event);
      if (event.type !== "run.resumed") return;
      resumedAt = count;
      if (event.accepted === true) acceptedAt = count;
      if (event.backend === undefined) return;
      spec = event.backend;
      marks = [];
    },
    recalled() {
      if (started?.type !== "run.started" || last === undefined)
        throw new RecordDamaged("The run has no first entry: its journal is damaged.");
      const { cwd, worktree, backend } = started;
      return {
        started,
        startedAt,
        last,
        cwd,
        worktree,
        spec: spec ?? backend,
        marks,
        isAsked,
        wasConfined: sandbox?.confined === true,
        hasWorked,
        isUndriven: isUndriven(started, resumedAt),
        isImported: isUnaccepted(started, acceptedAt),
        tree: newest,
        treeAt,
      };
    },
  };
}

export function recall(entries: readonly Entry[]): Recalled {
  const { add, recalled } = createRecall();
  for (const entry of entries) add(entry);
  return recalled();
}

type Started = Recalled["started"];

/**
 * How people take part, as that was said when the run was submitted. A record may hold anything: only these two are taken,
 * and everything is allowed only by a record of a fleet, which did not come with a clone or as a file.
 */
export function peopleSaid(journal: Pick<Journal, "mail">, started: Started): NonNullable<Started["people"]> {
  const { onPermission, expireMs }: { readonly [name: string]: unknown } = isObject(started.people)
    ? started.people
    : {};
  const mayAllow = journal.mail !== undefined && started.imported === undefined;
  const isSaid = onPermission === "deny" || onPermission === "halt" || (onPermission === "allow" && mayAllow);
  return defined({
    onPermission: isSaid ? onPermission : undefined,
    expireMs: typeof expireMs === "number" && expireMs > 0 ? expireMs : undefined,
  });
}

/** Whether this run came as a file and has not been accepted since. */
export function isImported(entries: readonly Entry[]): boolean {
  const isAccepted = ({ event }: Entry) => event.type === "run.resumed" && event.accepted === true;
  return isUnaccepted(entries[0]?.event, entries.findLastIndex(isAccepted) + 1);
}

/** `acceptedAt`: which entry said so, counted from 1; 0: none. */
function isUnaccepted(started: Event | undefined, acceptedAt: number): boolean {
  if (started?.type !== "run.started" || started.imported === undefined) return false;
  return acceptedAt <= started.imported.entries;
}
