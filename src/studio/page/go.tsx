/** Going from one screen to another without loading the page again. */
import type { ComponentChildren, JSX } from "preact";
import { createStore, useStore } from "./store.ts";
import { hrefOf, parseRoute, type Route } from "./route.ts";

const here = createStore<Route>(parseRoute(location.pathname, location.search));

addEventListener("popstate", () => here.set(() => parseRoute(location.pathname, location.search)));

export function useRoute(): Route {
  return useStore(here, same);
}

/** `replace`: the address changes and no step is added to the way back, as for filters and the moment of a run. */
export function go(route: Route, { replace = false }: { readonly replace?: boolean } = {}): void {
  const href = hrefOf(route);
  if (href !== location.pathname + location.search)
    history[replace ? "replaceState" : "pushState"](null, "", href);
  here.set(() => route);
  if (!replace) scrollTo(0, 0);
}

type LinkProps = {
  readonly to: Route;
  readonly class?: string;
  readonly current?: boolean;
  readonly title?: string;
  readonly label?: string;
  readonly id?: string;
  readonly replace?: boolean;
  readonly children: ComponentChildren;
};

/** A real link: it can be opened in another tab and copied. */
export function PageLink({ to, current = false, label, replace = false, ...rest }: LinkProps): JSX.Element {
  const href = hrefOf(to);
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to, { replace });
  };
  const marks = {
    ...(current ? { "aria-current": "page" as const } : {}),
    ...(label === undefined ? {} : { "aria-label": label }),
  };
  return <a {...rest} {...marks} href={href} onClick={open} />;
}

function same<T>(value: T): T {
  return value;
}
