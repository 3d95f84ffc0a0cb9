/** A TCP proxy before a server that can hold what a client sends, or lose what the server answers. */
import { connect, createServer, type Socket } from "node:net";

export type Proxy = {
  readonly port: number;
  /** From now on nothing of the clients arrives, until `pass`. */
  readonly hold: () => void;
  readonly pass: () => void;
  /** The next thing that clients send (with `text` in it) arrives, and they are cut off instead of getting the answer. Resolves then. */
  readonly loseNextAnswer: (text?: string) => Promise<void>;
  /** Ends all connections and takes no more. */
  readonly close: () => Promise<void>;
};

export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let isHolding = false;
  let held: (() => void)[] = [];
  let lose: (() => void) | null = null;
  let losesTo = "";
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    let isLosing = false;
    const end = () => {
      client.destroy();
      upstream.destroy();
      sockets.delete(client);
    };
    sockets.add(client);
    client.on("data", (data) => {
      const send = () => {
        if (lose !== null && data.includes(losesTo)) isLosing = true;
        upstream.write(data);
      };
      if (isHolding) held.push(send);
      else send();
    });
    upstream.on("data", (data) => {
      if (!isLosing) return void client.write(data);
      isLosing = false;
      lose?.();
      lose = null;
      end();
    });
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    hold: () => (isHolding = true),
    pass() {
      isHolding = false;
      for (const send of held.splice(0)) send();
      held = [];
    },
    loseNextAnswer: (text = "") =>
      new Promise((resolve) => {
        losesTo = text;
        lose = resolve;
      }),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
