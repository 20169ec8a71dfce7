import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type BodyBudget, readBody } from "../../../src/channels/push/read-delivery.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;

let server: Server;
let budget: BodyBudget;
beforeEach(async () => {
  budget = { bytesLeft: 3 * MIB };
  server = createServer(async (incoming: IncomingMessage, response) => {
    const answer = await readBody(incoming, 10 * MIB, budget).then(
      (body) => String(body.length),
      (error) => error.code,
    );
    response.setHeader("connection", "close").end(answer);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Sends what is given and holds the request open. */
function start(body: Buffer) {
  const { port } = server.address() as AddressInfo;
  const sending = request({ port, host: "127.0.0.1", method: "POST" });
  sending.on("error", () => {});
  const answer = once(sending, "response").then(async ([response]) => {
    let text = "";
    for await (const chunk of response) text += chunk;
    return text;
  });
  sending.write(body);
  return { sending, answer };
}

it("bodies that are being read hold no more than the budget together, and give it back", async () => {
  const slow = start(Buffer.alloc(2 * MIB));
  await until(() => budget.bytesLeft < 1.2 * MIB);
  expect(await start(Buffer.alloc(2 * MIB)).answer).toBe("unavailable");
  const small = start(Buffer.from("{}"));
  small.sending.end();
  expect(await small.answer).toBe("2");
  slow.sending.end();
  expect(await slow.answer).toBe(String(2 * MIB));
  await until(() => budget.bytesLeft === 3 * MIB);
  const next = start(Buffer.alloc(2 * MIB));
  next.sending.end();
  expect(await next.answer).toBe(String(2 * MIB));
});

it("a body above its own limit is answered as too large, and gives its bytes back", async () => {
  budget.bytesLeft = 30 * MIB;
  expect(await start(Buffer.alloc(11 * MIB)).answer).toBe("payload_too_large");
  expect(budget.bytesLeft).toBe(30 * MIB);
});

it("a sender that hangs up gives its bytes back", async () => {
  const { sending, answer } = start(Buffer.alloc(2 * MIB));
  answer.catch(() => {});
  await until(() => budget.bytesLeft < 1.2 * MIB);
  sending.destroy();
  await until(() => budget.bytesLeft === 3 * MIB);
});
