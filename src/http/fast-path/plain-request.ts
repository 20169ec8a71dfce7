import type { Socket } from "node:net";
import { ValueCollector } from "../../event/values.ts";

/** Maximum size of a request head. Longer heads are rare and handed off to `node:http`. */
const MAX_HEAD_BYTES = 4 * 1024;
/**
 * Matches request heads that the fast path accepts: a small, unambiguous subset of RFC 9112. The target is a path, each header name is
 * directly followed by a colon, values are visible ASCII, and every line ends with CRLF.
 */
const HEAD = /^POST \/[!-~]* HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~\dA-Za-z-]+:[\t -~]*\r\n)+\r\n$/;
const HEAD_END = Buffer.from("\r\n\r\n");
const TARGET_AT = "POST ".length;
const VERSION = " HTTP/1.1\r\n";
/** Matches a content length with as many digits as a JavaScript number can represent exactly. */
const LENGTH = /^\d{1,15}$/;

/** The parsed head of a request. */
export interface Head {
  readonly target: string;
  /** Header values by lowercase name. No name repeats. */
  readonly headers: Readonly<Record<string, string>>;
  /** Size of the head, in bytes. The body follows it. */
  readonly bytes: number;
  /** Size of the body in bytes, according to the head. */
  readonly bodyBytes: number;
  /** Whether the client closes the connection after this request. */
  readonly closes: boolean;
}

/**
 * Parses the head of a request with exactly the same result as Node (see test/http/fast-path). Returns `undefined` if `node:http` must read
 * the request, for example because it is invalid.
 */
export function readHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (end < HEAD_END.length || end > MAX_HEAD_BYTES) return undefined;
  // Decodes only the head, because each header value keeps the whole decoded text in memory.
  const text = bytes.toString("latin1", 0, end);
  if (!HEAD.test(text)) return undefined;
  const targetEnd = text.indexOf(" ", TARGET_AT);
  const headers = readHeaders(text, targetEnd + VERSION.length, end - 2);
  if (headers === undefined) return undefined;
  const { host, connection = "keep-alive", "content-length": length = "0" } = headers;
  const closes = connection === "close";
  if (host === undefined || !(closes || connection.toLowerCase() === "keep-alive")) return undefined;
  if (needsNodeParser(headers) || !LENGTH.test(length)) return undefined;
  return { target: text.slice(TARGET_AT, targetEnd), headers, bytes: end, bodyBytes: Number(length), closes };
}

/**
 * Returns whether a header needs Node's parser: it changes how messages are delimited or what happens to the connection, or Node treats it
 * specially.
 */
const needsNodeParser = (headers: Head["headers"]): boolean =>
  headers.expect !== undefined ||
  headers.trailer !== undefined ||
  headers.upgrade !== undefined ||
  headers["proxy-connection"] !== undefined ||
  headers["set-cookie"] !== undefined ||
  headers["transfer-encoding"] !== undefined;

/**
 * Parses the header lines in a range of the text. Returns `undefined` if a name repeats, because the meaning of a repeated header depends
 * on its name.
 */
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

/**
 * The state of a request's body:
 * - `cut`: the connection ended before the body was complete.
 * - `unread`: the body is too long for the fast path. The handler may reject the request because of its head. Otherwise the request is
 * handed off.
 */
export type BodyState = "whole" | "cut" | "unread";

/** A request with those members of `IncomingMessage` that hooks use. */
export class PlainRequest {
  readonly method = "POST";
  readonly complete = true;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly socket: Socket;
  readonly bodyState: BodyState;
  readonly #body: Buffer;

  constructor({ target, headers }: Head, body: Buffer, socket: Socket, bodyState: BodyState = "whole") {
    this.url = target;
    this.headers = headers;
    this.socket = socket;
    this.bodyState = bodyState;
    this.#body = body;
  }

  read(): Buffer {
    return this.#body;
  }
}
