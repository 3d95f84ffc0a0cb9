/** The page of the studio: takes the token, opens the stream and draws the screen that the address names. */
import { render, type FunctionComponent, type JSX } from "preact";
import { useEffect } from "preact/hooks";
import { PageFrame, ScreenFrame } from "./frame.tsx";
import { useRoute } from "./go.tsx";
import { listenToKeys } from "./keys.ts";
import { keepListening, useLive } from "./listen.ts";
import { Blank } from "./parts/status.tsx";
import { learnProject } from "./project.ts";
import type { Route } from "./route.ts";
import { PLACES, SCREENS } from "./screens/table.tsx";
import { applyTheme } from "./themes.ts";
import { hasToken, takeToken } from "./token.ts";

function App(): JSX.Element {
  const route = useRoute();
  const connection = useLive((now) => now.connection);
  const epoch = useLive((now) => now.epoch);
  useEffect(learnProject, [epoch]);
  if (!hasToken() || connection === "refused") return <SignIn />;
  const Shown = SCREENS[route.at] as FunctionComponent<{ readonly route: Route }> | undefined;
  return (
    <PageFrame places={PLACES}>
      {Shown === undefined ? <Nowhere /> : <Shown key={route.at} route={route} />}
    </PageFrame>
  );
}

function Nowhere(): JSX.Element {
  return (
    <ScreenFrame crumbs={[{ text: "Not found" }]}>
      <h1 class="hidden">Not found</h1>
      <Blank title="There is no such page.">
        <p>
          <a href="/runs">All runs</a>
        </p>
      </Blank>
    </ScreenFrame>
  );
}

/** The token is new with each start of the studio: an old address or an old tab has another one. */
function SignIn(): JSX.Element {
  return (
    <main>
      <h1 class="hidden">Lockstep studio</h1>
      <Blank title="Open the studio with the address that it printed.">
        <p>
          The address ends with a key that is new each time <code>lockstep studio</code> is started. Copy it
          from the terminal, or start the studio again with <code>--open</code>.
        </p>
      </Blank>
    </main>
  );
}

takeToken();
applyTheme();
addEventListener("hashchange", () => {
  if (takeToken()) location.reload();
});
if (hasToken()) keepListening();
listenToKeys();
render(<App />, document.querySelector("#root")!);
