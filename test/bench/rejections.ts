/**
 * The baseline for rejections: a Hono route that only responds, or Node's own server with `bare`. It sends the same response as the
 * gateway's rejection, built once, so that both pay the same cost for writing its headers.
 *
 * It closes connections like the gateway. If it closed them at once, a client that is still sending its body could lose the response.
 *
 * usage: node rejections.ts hono|bare '<a RejectionResponse>'; prints its port.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { closeGentlyAfterEarlyResponse } from "../../src/http/close-gently.ts";

export interface RejectionResponse {
  readonly status: number;
  /** Headers, except those that Node adds itself. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

const [, , kind, given = ""] = process.argv;
const { status, headers, body } = JSON.parse(given) as RejectionResponse;

const app = new Hono();
app.all("/hooks/:id", (c) => c.json(body, status as ContentfulStatusCode, headers));

const server =
  kind === "hono"
    ? (createAdaptorServer({ fetch: app.fetch }) as Server)
    : createServer((_, response) => {
        const text = JSON.stringify(body);
        response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) });
        response.end(text);
      });
const latest = new WeakMap<Socket, IncomingMessage>();
server.prependListener("request", (incoming) => latest.set(incoming.socket, incoming));
server.on("connection", (socket) => closeGentlyAfterEarlyResponse(socket, () => latest.get(socket)));
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.on("SIGTERM", () => process.exit(0));
