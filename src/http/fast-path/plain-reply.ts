import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

/** The connection that a reply is written to. */
export interface ReplyTarget {
  /**
   * Writes the headers that say how the connection goes on behind the others, then the body.
   *
   * @param closes true where it is to end behind this reply
   */
  readonly reply: (head: string, body: string, closes: boolean) => void;
  readonly destroy: () => void;
}

/** The answer to a request that was read on the fast path. */
export class PlainReply {
  headersSent = false;
  readonly #target: ReplyTarget;

  constructor(target: ReplyTarget) {
    this.#target = target;
  }

  /**
   * Writes all at once; `Date` and what the connection needs come of themselves.
   *
   * @param lines of headers that are known to be right, each with its end
   * @param headers further ones, in lower case; `connection` is `close`, if anything
   * @param body of as many bytes as `lines` say; a 204 has none
   * @throws TypeError for what may not stand in a head; then nothing was sent
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

/** The last one made: thousands of replies leave within one second. */
let last = { second: 0, text: "" };

function dateHeader(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== last.second) last = { second, text: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return last.text;
}
