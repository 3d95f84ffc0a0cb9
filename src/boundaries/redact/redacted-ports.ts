/**
 * Ports that keep secrets to themselves. Everything that is recorded or shown comes in through a port, so this is
 * the one place where secrets are taken out.
 */
import type { Redactor } from "./redact.ts";
import type { Backend, Hooks, Ports, TurnRequest, TurnResult } from "../../engine/ports.ts";
import type { BackendSpec } from "../../flow/event.ts";

export function discreet(ports: Ports, redactor: Redactor): Ports {
  const { toolbox, shell, watch, hooks, person } = ports;
  const { value } = redactor;
  return {
    ...ports,
    backend: discreetBackend(ports.backend, redactor),
    tidy: (result) => withoutSecrets(result, redactor),
    toolbox: {
      ...toolbox,
      call: async (...args) => value(await toolbox.call(...args)),
      callGranted: async (...args) => value(await toolbox.callGranted(...args)),
    },
    shell: {
      ...shell,
      check: async (...args) => value(await shell.check(...args)),
      perform: async (...args) => value(await shell.perform(...args)),
    },
    person: { ...person, ask: async (...args) => value(await person.ask(...args)) },
    watch: { ...watch, look: async (...args) => value(await watch.look(...args)) },
    ...(hooks === undefined ? {} : { hooks: discreetHooks(hooks, redactor) }),
  };
}

/** What is heard while it is said; what is held back for a moment is heard at the latest when the answer is there. */
function discreetBackend(backend: Backend, redactor: Redactor): Backend {
  const { turn, run } = backend;
  return {
    ...backend,
    ...(turn !== undefined && { turn: (request) => heard(request, redactor, turn) }),
    ...(run !== undefined && { run: (request) => heard(request, redactor, run) }),
  };
}

/** Where nothing is heard on the way, the answer is awaited once, by the engine. */
function heard<Request extends TurnRequest>(
  request: Request,
  redactor: Redactor,
  ask: (request: Request) => Promise<TurnResult>,
): Promise<TurnResult> {
  const { onText } = request;
  return onText === undefined ? ask(request) : overheard(request, onText, redactor, ask);
}

async function overheard<Request extends TurnRequest>(
  request: Request,
  onText: NonNullable<TurnRequest["onText"]>,
  redactor: Redactor,
  ask: (request: Request) => Promise<TurnResult>,
): Promise<TurnResult> {
  const stream = redactor.stream();
  const pass = (text: string) => {
    if (text !== "") onText(text);
  };
  try {
    return await ask({ ...request, onText: (delta) => pass(stream.write(delta)) });
  } finally {
    pass(stream.end());
  }
}

/** What a backend is built from again on resume is recorded; everything else that it says goes through `tidy`. */
export function discreetSpec({ spec }: Backend, { value }: Redactor): BackendSpec {
  const { id, models } = spec;
  return { id, options: value(spec.options), ...(models !== undefined && { models: value(models) }) };
}

function discreetHooks(hooks: Hooks, { value }: Redactor): Hooks {
  return { ...hooks, call: async (...args) => value(await hooks.call(...args)) };
}

/** Where the backend stands is for the backend alone to read; everything else is looked at. */
export function withoutSecrets(whole: TurnResult, { text, value }: Redactor): TurnResult {
  const judged = whole.judged === undefined ? undefined : value(whole.judged);
  const by = whole.by === undefined ? undefined : value(whole.by);
  const result =
    judged === whole.judged && by === whole.by
      ? whole
      : { ...whole, ...(judged !== undefined && { judged }), ...(by !== undefined && { by }) };
  if (result.kind === "fault") {
    const fault = value(result.fault);
    return fault === result.fault ? result : { ...result, fault };
  }
  const said = text(result.text);
  const calls = result.calls.length === 0 ? result.calls : value(result.calls);
  const output = result.output === undefined ? undefined : value(result.output);
  if (said === result.text && calls === result.calls && output === result.output) return result;
  return { ...result, text: said, calls, ...(output === undefined ? {} : { output }) };
}
