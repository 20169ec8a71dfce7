import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";
import type { Readable } from "node:stream";
import type { Values } from "../../event/values.ts";
import { COMMON_HEADERS, type HookExchange, type HookReply } from "../hook-exchange.ts";
import type { Head } from "./request-head.ts";

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
  readonly method = "POST";
  readonly target: string;
  readonly headers: Head["headers"];
  hasReplied = false;
  readonly #body: Buffer | Readable;
  readonly #connection: ExchangeTarget;

  /** @param body the request body; a stream if the body is long or was cut off */
  constructor({ target, headers }: Head, body: Buffer | Readable, connection: ExchangeTarget) {
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
