/** A screen whose code is loaded when it is opened for the first time. */
import type { FunctionComponent, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { RefusedRequest } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { Failed, Loading } from "../parts/status.tsx";

type Screen<Props> = FunctionComponent<Props>;

export function late<Props extends object>(load: () => Promise<Screen<Props>>): Screen<Props> {
  let known: Screen<Props> | null = null;
  return function Late(props: Props): JSX.Element {
    const [, redraw] = useState(0);
    const [error, setError] = useState<RefusedRequest | null>(null);
    const begin = () => {
      setError(null);
      load().then(
        (screen) => {
          known = screen;
          return redraw(1);
        },
        () => setError(new RefusedRequest(0, "STUDIO_GONE", GONE)),
      );
    };
    useEffect(() => {
      if (known === null) begin();
    }, []);
    if (known !== null) {
      const Known = known;
      return <Known {...props} />;
    }
    return (
      <ScreenFrame crumbs={[{ text: "Loading" }]}>
        <h1 class="hidden">Loading</h1>
        {error === null ? <Loading /> : <Failed error={error} again={() => location.reload()} />}
      </ScreenFrame>
    );
  };
}

const GONE = "The studio does not answer. Start it again: lockstep studio";
