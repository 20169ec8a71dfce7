import { once } from "node:events";
import { connect } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { createValidationRequests } from "../../../src/channels/cloudevents/validation-request.ts";
import { startListener } from "../../../src/gateway/listener.ts";
import { NodeExchange } from "../../../src/http/hooks.ts";
import { createLog } from "../../../src/log.ts";

it("a CloudEvents validation request has its callback URL called even after the sender disconnects, but not after shutdown", async () => {
  const called = Promise.withResolvers<string>();
  const validations = createValidationRequests({
    outbound: {
      async request({ url }) {
        called.resolve(url);
        throw new Error("away");
      },
      open: () => Promise.reject(new Error("away")),
      findBlockedAddress: async () => undefined,
    },
    log: createLog({ level: "silent" }),
  });
  const arrived = Promise.withResolvers<void>();
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.options("/", async ({ env }) => {
    arrived.resolve();
    await once(env.outgoing, "close");
    validations.answer(new NodeExchange(env.incoming, env.outgoing), {
      allowedOrigins: ["*"],
      requestsPerSecond: undefined,
    });
    return RESPONSE_ALREADY_SENT;
  });
  await using listener = await startListener({ host: "127.0.0.1", port: 0 }, app.fetch);
  const socket = connect(listener.port, "127.0.0.1");
  socket.write(
    "OPTIONS / HTTP/1.1\r\nHost: a\r\nWebHook-Request-Origin: a\r\nWebHook-Request-Callback: https://a.example/\r\n\r\n",
  );
  await arrived.promise;
  socket.destroy();
  expect(await called.promise).toBe("https://a.example/");
  await validations[Symbol.asyncDispose]();
});
