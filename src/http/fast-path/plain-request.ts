import type { Socket } from "node:net";
import { ValueCollector } from "../../event/values.ts";

/** Longer heads are rare, and left to Node. */
const MAX_HEAD_BYTES = 4 * 1024;
/**
 * The heads that are read here: a small part of what RFC 9112 allows, in which nothing can be understood in two ways. A target that is a
 * path, names of token characters straight before their colons, values of visible ASCII, lines that end as they must; nothing else.
 */
const HEAD = /^POST \/[!-~]* HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~\dA-Za-z-]+:[\t -~]*\r\n)+\r\n$/;
const HEAD_END = Buffer.from("\r\n\r\n");
const TARGET_AT = "POST ".length;
const VERSION = " HTTP/1.1\r\n";
/** All that a number holds exactly. */
const LENGTH = /^\d{1,15}$/;

/** The head of a request as it stood at the beginning of what came. */
export interface Head {
  readonly target: string;
  /** By their names in lower case; none of them stands there twice. */
  readonly headers: Readonly<Record<string, string>>;
  /** Where the body begins. */
  readonly bytes: number;
  /** As long as the body is, by the head. */
  readonly bodyBytes: number;
  /** Its sender wants no other answer on its connection. */
  readonly closes: boolean;
}

/** Reads the head of a request as Node reads it (test/http/fast-path). Undefined: Node is to read it, and to say what is wrong with it. */
export function readHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(HEAD_END) + HEAD_END.length;
  if (end < HEAD_END.length || end > MAX_HEAD_BYTES) return undefined;
  // No more than the head: who keeps a header keeps all of it.
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

/** What changes how a message is framed or what its connection is for, or has a rule of its own with Node. */
const needsNodeParser = (headers: Head["headers"]): boolean =>
  headers.expect !== undefined ||
  headers.trailer !== undefined ||
  headers.upgrade !== undefined ||
  headers["proxy-connection"] !== undefined ||
  headers["set-cookie"] !== undefined ||
  headers["transfer-encoding"] !== undefined;

/** The lines between two places. Undefined where a name repeats: what that means depends on the name. */
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
 * What came of a body. `cut`: it ended before it was whole. `unread`: it is too long to be read here, and its request may be refused by
 * its head; else it is nobody's here.
 */
export type BodyState = "whole" | "cut" | "unread";

/** A request of which nothing more is read: as much of Node's own as hooks look at. */
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

  /** The body. */
  read(): Buffer {
    return this.#body;
  }
}
