/** Notices of a run for the targets that the user's config.json names. */
import { createNotifier } from "../../effects/notify.ts";
import { noticesOf, type NoticeKind } from "../../tell/notice.ts";
import type { NotifyTarget } from "../world/config.ts";
import type { Ear, ListenContext } from "./listen.ts";

/** How long the end of a run may wait for a target. */
const LAST_MS = 3000;

/** What was written before is not reported again. */
export function createNotices({ flow, env, root, notify }: ListenContext): Ear {
  const targets = Object.entries(notify).map(([name, { on, ...target }]) => ({
    wants: (kind: NoticeKind) => on === undefined || on.includes(kind),
    to: createNotifier({ name, target, env, cwd: root, now: Date.now }),
  }));
  return {
    recall: () => undefined,
    hear: (moment) => {
      for (const notice of noticesOf(moment, flow.agent))
        for (const { wants, to } of targets) if (wants(notice.kind)) to.send(notice);
    },
    close: async () => (await Promise.all(targets.map(({ to }) => to.close(LAST_MS)))).flat(),
  };
}

export type NotifyTargets = { readonly [name: string]: NotifyTarget };
