import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createBodyBudget } from "../../../src/channels/body-budget.ts";
import { createReceiveDelivery } from "../../../src/channels/push/receive-delivery.ts";
import { pushChannel } from "./push-support.ts";

const channel = pushChannel(1_000);

const server = createServer();
beforeEach(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => server.close());

it("rejects a request as incomplete if its sender disconnected before it was read", async () => {
  const sending = request({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    method: "POST",
    headers: { "content-length": "10" },
  });
  sending.on("error", () => {});
  sending.write("12345");
  const [incoming] = (await once(server, "request")) as [IncomingMessage];
  incoming.on("error", () => {});
  // Stands for the time in which the channel is looked up.
  const closed = new Promise((resolve) => incoming.once("close", resolve));
  sending.destroy();
  await closed;
  const receive = createReceiveDelivery({
    ingest: () => Promise.reject(new Error("nothing has come")),
    bodies: createBodyBudget(),
    clock: Date.now,
  });
  const received = receive(channel, { incoming, clientAddress: "127.0.0.1", requestId: "req" });
  await expect(received).rejects.toMatchObject({ details: [{ message: "ended before it was complete" }] });
});
