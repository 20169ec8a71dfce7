import { createServer } from "node:http";
import { createSession } from "better-sse";
import { listenLocally } from "./local-server.ts";

/** The server stops writing to a connection above this amount until the reader catches up. */
const MAX_UNSENT_BYTES = 1024 * 1024;

/** An event stream server with history. It numbers its events and sends each connection those after its last event id. */
export interface StreamServer extends AsyncDisposable {
  readonly url: string;
  /** The `Last-Event-ID` that each connection sent, or an empty string if it sent none. */
  readonly told: readonly string[];
  readonly open: () => number;
  /** Returns the remote ports of the open connections. */
  readonly ports: () => readonly number[];
  /** Makes the next `count` events and sends them to all connections. Event names alternate between `even` and `odd`. */
  readonly make: (count: number) => void;
}

export async function startStreamServer(): Promise<StreamServer> {
  const told: string[] = [];
  const connections = new Map<() => void, number>();
  let made = 0;
  const server = createServer(async (request, response) => {
    const session = await createSession(request, response, { retry: null });
    told.push(session.lastId);
    let next = session.lastId === "" ? 0 : Number(session.lastId) + 1;
    const send = (): void => {
      for (; next < made && response.writableLength < MAX_UNSENT_BYTES; next++) {
        session.push({ n: next }, next % 2 === 0 ? "even" : "odd", String(next));
      }
    };
    response.on("drain", send);
    response.on("close", () => connections.delete(send));
    connections.set(send, request.socket.remotePort ?? 0);
    send();
  });
  const local = await listenLocally(server);
  return {
    ...local,
    url: `${local.origin}/`,
    told,
    open: () => connections.size,
    ports: () => [...connections.values()],
    make(count) {
      made += count;
      for (const send of connections.keys()) send();
    },
  };
}
