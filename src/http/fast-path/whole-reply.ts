import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "node:http";

/** The connection that a reply is written to. */
export interface ReplyTarget {
  /** The headers that say how it goes on. */
  readonly connectionHeaders: () => string;
  readonly reply: (text: string) => void;
  readonly destroy: () => void;
}

/** The answer to a request that came whole. It is written at once. */
export class WholeReply {
  headersSent = false;
  readonly #target: ReplyTarget;

  constructor(target: ReplyTarget) {
    this.#target = target;
  }

  /**
   * @param lines of headers that are known to be right, each with its end
   * @param headers further ones
   * @throws TypeError for what may not stand in a head; then nothing was sent
   */
  send(status: number, lines: string, headers: Readonly<Record<string, string>>, body = ""): void {
    let head = status === 200 ? OK : `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
    head += lines;
    for (const name in headers) {
      const value = headers[name] ?? "";
      validateHeaderName(name);
      validateHeaderValue(name, value);
      head += `${name}: ${value}\r\n`;
    }
    this.headersSent = true;
    this.#target.reply(`${head}${dateHeader()}${this.#target.connectionHeaders()}\r\n${body}`);
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
