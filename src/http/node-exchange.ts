import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { ValueCollector, type Values } from "../event/values.ts";
import { DRAIN_MS } from "./close-gently.ts";
import { COMMON_HEADERS, type HookExchange, type HookReply } from "./hook-exchange.ts";

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
    return this.#incoming.complete ? (this.#incoming.read() ?? NO_BYTES) : this.#incoming;
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

/** Returns all header values. Uses the raw headers if a name repeats, because Node joins or drops repeated headers. */
export function collectHeaderValues({
  headers,
  rawHeaders,
}: Pick<IncomingMessage, "headers" | "rawHeaders">): Values {
  const names = Object.keys(headers);
  if (names.length * 2 !== rawHeaders.length) return collectRawHeaders(rawHeaders);
  const { collected } = new ValueCollector();
  for (const name of names) {
    const value = headers[name];
    // Node returns a list for some headers, even if they occur only once.
    if (typeof value !== "string") return collectRawHeaders(rawHeaders);
    collected[name] = decodeHeader(value);
  }
  return collected;
}

/** Decodes a header value as UTF-8, if it is valid UTF-8. Node decodes all headers as Latin-1. */
function decodeHeader(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : value;
}

function collectRawHeaders(rawHeaders: readonly string[]): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), decodeHeader(rawHeaders[i + 1] ?? ""));
  }
  return values.collected;
}
