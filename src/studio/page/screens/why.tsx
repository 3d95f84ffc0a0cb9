/** Why a visit went the way it did, on a page of its own. */
import type { JSX } from "preact";
import { ScreenFrame, visitCrumbs } from "../frame.tsx";
import { stepFocus, useKeys } from "../keys.ts";
import { useLive } from "../listen.ts";
import { Inspector } from "../parts/inspector.tsx";
import type { Route } from "../route.ts";

type WhyRoute = Extract<Route, { readonly at: "why" }>;

export function WhyScreen({ route: { run, visit } }: { readonly route: WhyRoute }): JSX.Element {
  const events = useLive((now) => now.runs.get(run)?.events ?? 0);
  const parts = () => [...document.querySelectorAll<HTMLDetailsElement>(".chain > .chain-part")];
  const step = (by: number) => stepFocus(".chain > .chain-part > summary", by);
  useKeys("Why", {
    n: { about: "Next part", run: () => step(1) },
    p: { about: "Previous part", run: () => step(-1) },
    e: {
      about: "Fold or unfold all",
      run: () => {
        const all = parts();
        const isOpen = all.some((part) => part.open);
        for (const part of all) part.open = !isOpen;
      },
    },
  });
  return (
    <ScreenFrame crumbs={visitCrumbs(run, visit, "Why")}>
      <div class="head">
        <div class="titles">
          <h1>Why it went there</h1>
          <p class="soft">The chain behind one decision of the run, worked out from its journal.</p>
        </div>
      </div>
      <Inspector run={run} visit={visit} version={events} isAlone />
    </ScreenFrame>
  );
}
