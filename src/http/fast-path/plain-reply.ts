import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

/** The connection to which a reply is written. */
export interface ReplyTarget {
  /**
   * Appends the `Connection` header to `head`, then writes head and body.
   *
   * @param closes whether to close the connection after this reply
   */
  readonly reply: (head: string, body: string, closes: boolean) => void;
  readonly destroy: () => void;
}

/** The response to a request that was read on the fast path. */
export class PlainReply {
  headersSent = false;
  readonly #target: ReplyTarget;

  constructor(target: ReplyTarget) {
    this.#target = target;
  }

  /**
   * Sends the complete reply. The `Date` and `Connection` headers are added automatically.
   *
   * @param lines header lines that need no validation, each with its line end
   * @param headers other headers with lowercase names; `connection` can only be `close`
   * @param body the body; its size must match the length in `lines`, and it must be empty for a 204
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

/** The `Date` header of the current second. It is cached because thousands of replies may be sent within one second. */
let last = { second: 0, text: "" };

function dateHeader(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== last.second) last = { second, text: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return last.text;
}
