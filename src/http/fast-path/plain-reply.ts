import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

export interface ReplyTarget {
  /**
   * Adds the `Connection` header to `head` and writes the reply.
   *
   * @param closes whether to close the connection afterwards
   */
  readonly reply: (head: string, body: string, closes: boolean) => void;
  readonly destroy: () => void;
}

export class PlainReply {
  headersSent = false;
  readonly #target: ReplyTarget;

  constructor(target: ReplyTarget) {
    this.#target = target;
  }

  /**
   * Sends the complete reply. Adds the `Date` and `Connection` headers.
   *
   * @param lines trusted header lines, each with its line end
   * @param headers further headers with lowercase names; `connection` can only be `close`
   * @param body must match the content length in `lines`, and be empty for status 204
   * @throws TypeError for an invalid header, before any byte is sent
   */
  send(status: number, lines: string, headers: Readonly<Record<string, string>>, body = ""): void {
    let head = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
    head += lines;
    for (const name in headers) {
      if (name === "connection") continue;
      const value = headers[name] ?? "";
      validateHeaderName(name);
      validateHeaderValue(name, value);
      head += `${name}: ${value}\r\n`;
    }
    this.headersSent = true;
    const closes = headers.connection !== undefined;
    this.#target.reply(head + dateHeader(), status === 204 ? "" : body, closes);
  }

  destroy(): void {
    this.#target.destroy();
  }
}

const OK = "HTTP/1.1 200 OK\r\n";

/** The `Date` header of the current second, cached because thousands of replies may be sent per second. */
let last = { second: 0, text: "" };

function dateHeader(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== last.second) last = { second, text: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return last.text;
}
