import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface ReceivedRequest {
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** A server with one response per request. The last response is repeated. */
export class AnswerServer implements AsyncDisposable {
  answers: Answer[] = [];
  readonly requests: ReceivedRequest[] = [];
  readonly #server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    this.requests.push({ url: request.url ?? "", headers: request.headers, text });
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    answer?.(request, response);
  });

  static async start(): Promise<AnswerServer> {
    const started = new AnswerServer();
    started.#server.listen(0, "127.0.0.1");
    await once(started.#server, "listening");
    return started;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Responds with a JSON page. A string is sent as is. */
export const json =
  (body: unknown, headers: Readonly<Record<string, string>> = {}, status = 200): Answer =>
  (_, response) =>
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body));

export const status = (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  json({}, headers, code);
