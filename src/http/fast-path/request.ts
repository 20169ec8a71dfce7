import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";
import type { Readable } from "node:stream";
import { ValueCollector, type Values } from "../../event/values.ts";
import { COMMON_HEADERS, type HookExchange, type HookReply } from "../hook-exchange.ts";

/** Maximum size of a request head in bytes. Requests with a larger head are rare and handled by `node:http`. */
const MAX_HEAD_BYTES = 4 * 1024;
/**
 * Request heads that the fast path accepts: a small, unambiguous subset of RFC 9112. The method is one of a delivery, and the target is a
 * path. A colon directly follows each header name, values are visible ASCII, and lines end with CRLF.
 */
const HEAD =
  /^(?:POST|PUT|PATCH|GET|DELETE) \/[!-~]* HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~\dA-Za-z-]+:[\t -~]*\r\n)+\r\n$/;
const HEAD_END = Buffer.from("\r\n\r\n");
const VERSION = " HTTP/1.1\r\n";
/** Matches a host name or address, with an optional port. `node:http` handles all others, most of which are invalid. */
const HOST = /^[\w.-]*(?::\d+)?$/;
/** Matches a content length of at most 15 digits, which a JavaScript number represents exactly. */
const LENGTH = /^\d{1,15}$/;

/** Matches the target of a channel address that needs no decoding. Node and Hono read all others. */
const CHANNEL_TARGET = /^\/hooks\/([\w.~-]+)(?:\?|$)/;

export interface Head {
  readonly method: string;
  readonly channelId: string;
  readonly target: string;
  /** Header values by lowercase name. Names are unique. */
  readonly headers: Readonly<Record<string, string>>;
  /** Size of the head in bytes. The body starts at this offset. */
  readonly bytes: number;
  /** Body size in bytes, as announced in the head. */
  readonly bodyBytes: number;
  /** Whether the client wants to close the connection after this request. */
  readonly closes: boolean;
}

/** Returns the size of the head and of the body that it announces, in bytes. */
export const getRequestBytes = ({ bytes, bodyBytes }: Head): number => bytes + bodyBytes;

/**
 * Parses the head of a request to a channel in the same way as Node. Returns `undefined` if `node:http` must handle the request, for
 * example because it is invalid.
 */
export function readHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (end < HEAD_END.length || end > MAX_HEAD_BYTES) return undefined;
  // Decodes only the head, because each header value keeps the whole decoded text in memory.
  const text = bytes.toString("latin1", 0, end);
  if (!HEAD.test(text)) return undefined;
  const methodEnd = text.indexOf(" ");
  const targetEnd = text.indexOf(" ", methodEnd + 1);
  const target = text.slice(methodEnd + 1, targetEnd);
  const channelId = CHANNEL_TARGET.exec(target)?.[1];
  if (channelId === undefined) return undefined;
  const headers = readHeaders(text, targetEnd + VERSION.length, end - 2);
  if (headers === undefined) return undefined;
  const { host, connection = "keep-alive", "content-length": length = "0" } = headers;
  const closes = connection === "close";
  if (host === undefined || !HOST.test(host) || !(closes || connection.toLowerCase() === "keep-alive"))
    return undefined;
  if (needsNodeParser(headers) || !LENGTH.test(length)) return undefined;
  const method = text.slice(0, methodEnd);
  return { method, channelId, target, headers, bytes: end, bodyBytes: Number(length), closes };
}

/** Returns whether only Node's parser can handle a header, for example because the header determines where the body ends. */
const needsNodeParser = (headers: Head["headers"]): boolean =>
  headers.expect !== undefined ||
  headers.trailer !== undefined ||
  headers.upgrade !== undefined ||
  headers["proxy-connection"] !== undefined ||
  headers["set-cookie"] !== undefined ||
  headers["transfer-encoding"] !== undefined;

/** Parses header lines. Returns `undefined` if a name repeats, because the meaning of repeated headers depends on the name. */
function readHeaders(text: string, from: number, to: number): Record<string, string> | undefined {
  const headers = new ValueCollector().collected as Record<string, string>;
  for (let at = from; at < to; ) {
    const colon = text.indexOf(":", at);
    const end = text.indexOf("\r", colon);
    const name = text.slice(at, colon).toLowerCase();
    if (headers[name] !== undefined) return undefined;
    headers[name] = text.slice(colon + 1, end).trim();
    at = end + 2;
  }
  return headers;
}

/** The connection of an exchange. */
export interface ExchangeTarget {
  readonly peerAddress: string | undefined;
  /**
   * Adds the `Connection` header to `head` and sends the response.
   *
   * @param closes whether to close the connection after this response
   */
  readonly reply: (head: string, body: string, closes: boolean) => void;
  readonly destroy: () => void;
  /** Calls the listener after the response was sent or the connection was closed. */
  readonly onClosed: (listener: () => void) => void;
}

/** A request that the fast path has read. */
export class FastExchange implements HookExchange {
  readonly sinceMs = performance.now();
  readonly method: string;
  readonly target: string;
  readonly headers: Head["headers"];
  hasReplied = false;
  readonly #body: Buffer | Readable;
  readonly #connection: ExchangeTarget;

  /** @param body the request body; a stream if the body is long or was cut off */
  constructor({ method, target, headers }: Head, body: Buffer | Readable, connection: ExchangeTarget) {
    this.method = method;
    this.target = target;
    this.headers = headers;
    this.#body = body;
    this.#connection = connection;
  }

  get peerAddress(): string | undefined {
    return this.#connection.peerAddress;
  }

  /** `headers` already contains all values, because requests with repeated headers are handled by `node:http`. */
  readHeaderValues(): Values {
    return this.headers;
  }

  takeBody(): Buffer | Readable {
    return this.#body;
  }

  reply({ status, headers, body }: HookReply, requestId: string): void {
    let head = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
    head += `${COMMON_LINES}x-request-id: ${requestId}\r\n`;
    if (status !== 204) head += `content-length: ${body === undefined ? "0" : Buffer.byteLength(body)}\r\n`;
    for (const name in headers) {
      if (name === "connection") continue;
      const value = headers[name] ?? "";
      validateHeaderName(name);
      validateHeaderValue(name, value);
      head += `${name}: ${value}\r\n`;
    }
    this.hasReplied = true;
    const closes = headers.connection !== undefined;
    this.#connection.reply(head + dateHeader(), status === 204 ? "" : (body ?? ""), closes);
  }

  abort(): void {
    this.#connection.destroy();
  }

  closed(): Promise<void> {
    return new Promise((resolve) => this.#connection.onClosed(resolve));
  }
}

const OK = "HTTP/1.1 200 OK\r\n";
const COMMON_LINES = Object.entries(COMMON_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");

/** The `Date` header of the current second, cached because many responses are sent within one second. */
let last = { second: 0, text: "" };

function dateHeader(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== last.second) last = { second, text: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return last.text;
}
