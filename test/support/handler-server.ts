import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { listenLocally } from "./local-server.ts";

/** A delivery as received by a handler. */
export interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly path: string;
}

/** Decides the reaction to the n-th delivery of a `webhook-id`: send no response, close the connection, or respond. */
export type Answer = (
  received: Received,
  times: number,
) =>
  | "hang"
  | "cut"
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string };

/** A server for handlers. Records deliveries and responds per path as set in `answers`, by default with 200. */
export interface HandlerServer extends AsyncDisposable {
  readonly received: Received[];
  readonly answers: Map<string, Answer>;
  readonly urlOf: (path: string) => string;
  /** The deliveries received at this path. */
  readonly at: (path: string) => readonly Received[];
  /** The deliveries at this path that got a 2xx response. */
  readonly taken: (path: string) => readonly Received[];
}

export async function startHandlerServer(): Promise<HandlerServer> {
  const received: Received[] = [];
  const taken = new Set<Received>();
  const answers = new Map<string, Answer>();
  const times = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => undefined);
    if (body === undefined) return;
    const one = { headers: headersOf(request), body: String(body), path: request.url ?? "" };
    received.push(one);
    const id = `${one.path} ${one.headers["webhook-id"]}`;
    times.set(id, (times.get(id) ?? 0) + 1);
    const answer = answers.get(one.path)?.(one, times.get(id) ?? 0) ?? { status: 200 };
    if (answer === "hang") return;
    if (answer === "cut") {
      request.socket.destroy();
      return;
    }
    if (answer.status < 300) taken.add(one);
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  const local = await listenLocally(server);
  const at = (path: string): readonly Received[] => received.filter((one) => one.path === path);
  return {
    ...local,
    received,
    answers,
    at,
    taken: (path) => at(path).filter((one) => taken.has(one)),
    urlOf: (path) => `${local.origin}${path}`,
  };
}

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
