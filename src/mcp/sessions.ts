/** Sessions of clients that begin with `initialize`: one server each, no more than there is room for. */
import { randomUUID } from "node:crypto";
import type { Json } from "../flow/json.ts";
import type { SdkServer, SessionTransport } from "./sdk.ts";
import { createSdkServer, type Serving } from "./serving.ts";

export type Sessions = {
  readonly answer: (request: Request, parsedBody: Json | undefined) => Promise<Response>;
  readonly toolsChanged: () => void;
  readonly close: () => Promise<void>;
};

type Session = { readonly server: SdkServer; readonly transport: SessionTransport; busy: number };

const MOST_SESSIONS = 64;

export function createSessions(serving: Serving, most = MOST_SESSIONS): Sessions {
  /** The one that was used last comes last. */
  const open = new Map<string, Session>();

  const begin = async (): Promise<Session> => {
    const server = createSdkServer(serving, false);
    const transport = new serving.sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id: string) => void open.set(id, session),
      onsessionclosed: (id: string) => void open.delete(id),
    });
    const session: Session = { server, transport, busy: 0 };
    await server.connect(transport);
    return session;
  };

  /** Makes room by ending the session that nobody has used for longest and that nobody waits for. */
  const makeRoom = async (): Promise<boolean> => {
    if (open.size < most) return true;
    const idle = [...open].find(([, { busy }]) => busy === 0);
    if (idle === undefined) return false;
    open.delete(idle[0]);
    await idle[1].server.close();
    return true;
  };

  return {
    async answer(request, parsedBody) {
      const id = request.headers.get("mcp-session-id");
      const known = id === null ? undefined : open.get(id);
      if (id !== null && known === undefined)
        return failure(404, "This session has ended. Begin another one.");
      if (known === undefined && !(await makeRoom()))
        return failure(503, `${most} sessions are busy. Try again later.`);
      const session = known ?? (await begin());
      if (id !== null && known !== undefined) {
        open.delete(id);
        open.set(id, known);
      }
      session.busy += 1;
      const answered = await session.transport
        .handleRequest(request, parsedBody === undefined ? {} : { parsedBody })
        .finally(() => (session.busy -= 1));
      // What did not begin a session needs no server.
      if (known === undefined && session.transport.sessionId === undefined) await session.server.close();
      return answered.body === null ? answered : whileRead(session, answered);
    },
    toolsChanged: () => {
      for (const { server } of open.values()) void server.sendToolListChanged().catch(() => undefined);
    },
    async close() {
      for (const { server } of open.values()) await server.close();
      open.clear();
    },
  };
}

/** The session is in use until the answer is read or its reader has gone. */
function whileRead(session: Session, { body, status, headers }: Response): Response {
  session.busy += 1;
  let isOver = false;
  const end = () => {
    if (!isOver) session.busy -= 1;
    isOver = true;
  };
  const reader = body!.getReader();
  const stream = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      end();
      controller.close();
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  });
  return new Response(stream, { status, headers });
}

function failure(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_001, message }, id: null }, { status });
}
