/**
 * The least that refuses: a route of Hono through its adapter that only answers, or with `bare` Node's own server. A path that ends in
 * `/close` is answered as the last of its connection, as a body that is not read has to be.
 *
 * usage: node refusing.ts hono|bare; prints its port.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";

const REFUSED = { code: "not_found", message: "There is no such channel." };

const app = new Hono();
app.all("/hooks/:id", (c) => c.json(REFUSED, 404));
app.all("/hooks/:id/close", (c) => c.json(REFUSED, 404, { connection: "close" }));

const server =
  process.argv[2] === "hono"
    ? (createAdaptorServer({ fetch: app.fetch }) as Server)
    : createServer((request, response) => {
        const body = JSON.stringify(REFUSED);
        response.writeHead(404, {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          ...(request.url?.endsWith("/close") && { connection: "close" }),
        });
        response.end(body);
      });
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.on("SIGTERM", () => process.exit(0));
