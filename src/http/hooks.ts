import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { getPath } from "hono/utils/url";
import type { Values } from "../event/values.ts";
import { DRAIN_MS } from "./close-gently.ts";
import {
  COMMON_HEADERS,
  HOOKS_PATH,
  type HookExchange,
  type HookReply,
  type ReceiveHook,
} from "./hook-exchange.ts";
import { collectHeaderValues } from "./request.ts";

/**
 * Creates the route of all channel addresses. It writes responses directly to Node's response object. The fast path may receive a request
 * before it comes to this route.
 */
export function createHooks(receive: ReceiveHook): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>({ getPath: getRoutePath });
  // Matches slashes too, because a misspelled address may contain a secret channel id, which no other handler should see.
  app.all(`${HOOKS_PATH}:channelId{.*}`, function receiveRequest({ env, req }) {
    // Accepts slashes around the id, because many senders join or complete addresses with them.
    const channelId = req.param("channelId").replace(/^\/|\/$/g, "");
    const isOne = channelId !== "" && !channelId.includes("/");
    receive(isOne ? channelId : undefined, new NodeExchange(env.incoming, env.outgoing));
    return req.method === "HEAD" ? createSentResponse() : RESPONSE_ALREADY_SENT;
  });
  return app;
}

/**
 * Returns a marker that tells `@hono/node-server` that the response is written elsewhere. For HEAD requests, Hono copies the marker. The
 * copy is only recognized if the original was read.
 */
function createSentResponse(): Response {
  const response = new Response(null, RESPONSE_ALREADY_SENT);
  void response.body;
  return response;
}

/** Matches a request target under the path prefix of channel addresses, in origin form or absolute form (RFC 9112 section 3.2). */
const HOOK_TARGET = /^(?:https?:\/\/[^/?#]+)?(\/hooks\/[^?#]*)/;

/**
 * Returns the path of a request for the router. The path of a channel address is returned as sent. Otherwise `/hooks/../v1` would reach the
 * management API, even behind a proxy that only forwards paths under `/hooks/`.
 */
export function getRoutePath(
  request: Request,
  { env }: { readonly env?: Partial<HttpBindings> | undefined } = {},
): string {
  const target = env?.incoming?.url;
  const sent = HOOK_TARGET.exec(target ?? "")?.[1];
  if (sent !== undefined) return sent;
  const path = getPath(request);
  // Only the address as Inlet shows it is a channel's address, not `/x/../hooks/…` or `/%68ooks/…`.
  return target !== undefined && path.startsWith(HOOKS_PATH) ? target : path;
}

/** A request that `node:http` has read. */
export class NodeExchange implements HookExchange {
  readonly sinceMs = performance.now();
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage["headers"];
  readonly peerAddress: string | undefined;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  #headerValues: Values | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.method = incoming.method ?? "";
    this.target = incoming.url ?? "/";
    this.headers = incoming.headers;
    this.peerAddress = incoming.socket.remoteAddress;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  get hasReplied(): boolean {
    return this.#outgoing.headersSent;
  }

  readHeaderValues(): Values {
    this.#headerValues ??= collectHeaderValues(this.#incoming);
    return this.#headerValues;
  }

  takeBody(): Buffer | Readable {
    // Almost all bodies have already arrived and can be read without waiting for events.
    return this.#incoming.complete ? readArrived(this.#incoming) : this.#incoming;
  }

  reply({ status, headers, body }: HookReply, requestId: string): void {
    const incoming = this.#incoming;
    const outgoing = this.#outgoing;
    // A flat list is faster, because Node would check an object entry by entry.
    const list = [...COMMON_LIST, "x-request-id", requestId];
    if (status !== 204)
      list.push("content-length", body === undefined ? "0" : String(Buffer.byteLength(body)));
    for (const name in headers) list.push(name, headers[name] ?? "");
    outgoing.writeHead(status, list);
    // Waits for one turn of the event loop, in which Node reads a body that has already arrived. If this is the last response of the
    // connection, Node closes it (see `closeGentlyAfterEarlyResponse`).
    if (!incoming.complete && headers.connection !== "close")
      outgoing.on("finish", () => setImmediate(endReading, incoming));
    outgoing.end(body);
  }

  abort(): void {
    this.#outgoing.destroy();
  }

  closed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#outgoing.closed) resolve();
    else this.#outgoing.once("close", resolve);
    return promise;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** Returns a body that has arrived completely. `read` returns all of it in Node.js 24, and a single chunk in Node.js 26. */
function readArrived(incoming: IncomingMessage): Buffer {
  const chunks: Buffer[] = [];
  for (let chunk: Buffer | null = incoming.read(); chunk !== null; chunk = incoming.read())
    chunks.push(chunk);
  const [first = NO_BYTES] = chunks;
  return chunks.length > 1 ? Buffer.concat(chunks) : first;
}

const COMMON_LIST = Object.entries(COMMON_HEADERS).flat();

/** Closes the connection if the client keeps sending its body after the response. Otherwise Node would read until the request timeout. */
function endReading(incoming: IncomingMessage): void {
  // No timer is created in this case, because a timer would keep the whole request in memory.
  if (incoming.complete) return;
  const timer = setTimeout(() => {
    if (!incoming.complete) incoming.socket.destroySoon();
  }, DRAIN_MS);
  timer.unref();
}
