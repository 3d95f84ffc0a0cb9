/** What all screens share: the rail, the breadcrumb, the connection, the theme and the list of keys. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { age, count } from "../../flow/text/figures.ts";
import { shownInLine } from "../../flow/text/harmless.ts";
import { go, PageLink, useRoute } from "./go.tsx";
import { allKeys, announced, copyOffered, EVERYWHERE, keysAreOn, switchKeys, useKeys } from "./keys.ts";
import { useLive, useSeconds } from "./listen.ts";
import { Foreign } from "./parts/foreign.tsx";
import { useProject } from "./project.ts";
import { ALL_RUNS, runAt, visitText, type Route, type VisitName } from "./route.ts";
import { createStore, useStore } from "./store.ts";
import { setTheme, theme, THEMES } from "./themes.ts";

export type RailPlace = {
  readonly name: string;
  readonly key: string;
  readonly route: Route;
  readonly holds: readonly Route["at"][];
};

/** A part of the breadcrumb; without a route it is where one is. */
export type Crumb = { readonly text: string; readonly to?: Route };

/** The way to a screen about one visit. */
export function visitCrumbs(run: string, visit: VisitName, screen: string): readonly Crumb[] {
  return [
    { text: "Runs", to: ALL_RUNS },
    { text: run, to: runAt(run) },
    { text: visitText(visit), to: runAt(run, visit) },
    { text: screen },
  ];
}

const help = createStore(false);

export function PageFrame({
  places,
  children,
}: {
  readonly places: readonly RailPlace[];
  readonly children: ComponentChildren;
}): JSX.Element {
  useKeys(EVERYWHERE, {
    "?": { about: "Show the keys", run: () => help.set((now) => !now) },
    y: { about: "Copy the command of this screen", run: copyOffered },
    "/": {
      about: "Filter",
      run: () => document.querySelector<HTMLElement>("main input[type=search]")?.focus(),
    },
    Escape: { about: "Leave a field, or go back", run: leave },
    ...Object.fromEntries(
      places.map(({ key, name, route }) => [`g ${key}`, { about: `Go to ${name}`, run: () => go(route) }]),
    ),
  });
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Rail places={places} />
      <div class="body">{children}</div>
      <Announcements />
      <Keys />
    </div>
  );
}

function leave(): void {
  const { activeElement } = document;
  if (help.get()) help.set(() => false);
  else if (activeElement instanceof HTMLElement && activeElement.matches("input, textarea, select"))
    activeElement.blur();
  else history.back();
}

function Rail({ places }: { readonly places: readonly RailPlace[] }): JSX.Element {
  const route = useRoute();
  const open = useLive(({ questions }) => questions.open);
  const { project } = useProject();
  return (
    <nav class="rail" aria-label="Screens">
      <PageLink to={ALL_RUNS} class="brand" label="Lockstep studio: all runs">
        <img src="/icon.svg" alt="" />
        <span>Lockstep</span>
      </PageLink>
      {places.map((place) => (
        <PageLink key={place.name} to={place.route} class="place" current={place.holds.includes(route.at)}>
          {place.name}
          {place.route.at === "inbox" && open > 0 && (
            <span class="count" aria-label={`${count(open, "question")} open`}>
              {open}
            </span>
          )}
        </PageLink>
      ))}
      <div class="foot">
        {project !== null && (
          <span title={project.root}>
            <Foreign text={project.name} most={40} /> <span class="nowrap">· v{project.version}</span>
          </span>
        )}
        <ThemeChoice />
      </div>
    </nav>
  );
}

function ThemeChoice(): JSX.Element {
  const chosen = useStore(theme, (now) => now);
  return (
    <div class="theme" role="group" aria-label="Theme">
      {THEMES.map((one) => (
        <button key={one} type="button" aria-pressed={chosen === one} onClick={() => setTheme(one)}>
          {one}
        </button>
      ))}
    </div>
  );
}

/** The head of a screen with its content: every screen begins with it. */
export function ScreenFrame({
  crumbs,
  children,
}: {
  readonly crumbs: readonly Crumb[];
  readonly children: ComponentChildren;
}): JSX.Element {
  const open = useLive(({ questions }) => questions.open);
  const title = crumbs
    .map(({ text }) => text)
    .toReversed()
    .join(" · ");
  useEffect(() => {
    // The window and its list of tabs show it: it may name a run or a step of somebody else.
    document.title = shownInLine(`${open > 0 ? `(${open}) ` : ""}${title} · Lockstep`.toWellFormed(), 200);
  }, [title, open]);
  return (
    <>
      <header class="top">
        <nav aria-label="Where you are" class="grow">
          <ol class="crumbs">
            {crumbs.map(({ text, to }) => (
              <li key={text}>
                {to === undefined ? (
                  <span aria-current="page">
                    <Foreign text={text} most={60} />
                  </span>
                ) : (
                  <PageLink to={to}>
                    <Foreign text={text} most={60} />
                  </PageLink>
                )}
              </li>
            ))}
          </ol>
        </nav>
        <Signs />
      </header>
      <main id="main" tabIndex={-1}>
        <JournalProblem />
        {children}
      </main>
    </>
  );
}

function JournalProblem(): JSX.Element | null {
  const problem = useLive((now) => now.problem);
  return problem === null ? null : (
    <div class="note bad" role="status">
      <p>
        <strong>The recorded runs cannot be read at the moment.</strong> <Foreign text={problem} most={600} />
      </p>
      <p>What is shown is what was read before. The page continues by itself.</p>
    </div>
  );
}

function Signs(): JSX.Element {
  const connection = useLive((now) => now.connection);
  const heardAt = useLive((now) => now.heardAt);
  const { project } = useProject();
  const now = useSeconds(connection === "lost");
  return (
    <div class="signs">
      {project?.readOnly != null && (
        <span class="chip" title={project.readOnly.why}>
          read only
        </span>
      )}
      {connection === "live" && (
        <span class="sign">
          <span class="dot good" /> live
        </span>
      )}
      {connection === "connecting" && (
        <span class="sign">
          <span class="dot" /> connecting
        </span>
      )}
      {connection === "lost" && (
        <span class="sign warn">
          <span class="dot warn" />{" "}
          {heardAt === null ? "no connection" : `last heard ${age(now - heardAt)} ago`}
        </span>
      )}
      {connection === "crowded" && (
        <span
          class="sign warn"
          title="A browser holds few connections to one server, and other windows have them. This one asks every few seconds."
        >
          <span class="dot warn" /> asks every few seconds
        </span>
      )}
      {connection === "refused" && (
        <span class="sign bad">
          <span class="dot bad" /> not signed in
        </span>
      )}
      <button
        type="button"
        class="btn quiet small"
        aria-label="Theme and keys"
        onClick={() => help.set(() => true)}
      >
        <kbd>?</kbd>
      </button>
    </div>
  );
}

function Announcements(): JSX.Element {
  const text = useStore(announced, (now) => now);
  return (
    <div class="hidden" role="status" aria-live="polite">
      {text}
    </div>
  );
}

function Keys(): JSX.Element {
  const isOpen = useStore(help, (now) => now);
  const isOn = useStore(keysAreOn, (now) => now);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen && dialog.current?.open === false) dialog.current.showModal();
    if (!isOpen) dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={() => help.set(() => false)}>
      <div class="stack">
        <div class="row">
          <h2 id="keys-title" class="grow">
            Theme and keys
          </h2>
          <button type="button" class="btn small" onClick={() => help.set(() => false)}>
            Close
          </button>
        </div>
        <ThemeChoice />
        <label class="row">
          <input
            type="checkbox"
            checked={isOn}
            onChange={(event) => switchKeys(event.currentTarget.checked)}
          />
          Single keys are shortcuts
        </label>
        {isOpen &&
          allKeys().map(({ group, keys }) => (
            <section key={group} class="stack tight">
              <h3>{group}</h3>
              <dl class="facts">
                {Object.entries(keys).map(([chord, { about }]) => (
                  <div key={chord} style={{ display: "contents" }}>
                    <dt>
                      {chord.split(" ").map((key) => (
                        <kbd key={key}>{key}</kbd>
                      ))}
                    </dt>
                    <dd>{about}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
    </dialog>
  );
}
