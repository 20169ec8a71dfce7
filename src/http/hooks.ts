import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { HOOKS_PATH, type ReceiveHook } from "./hook-exchange.ts";
import { NodeExchange } from "./node-exchange.ts";

/**
 * Creates the route of all channel addresses. The response is written to Node's own objects. The fast path may receive a request before it
 * comes to this route.
 */
export function createHooks(receive: ReceiveHook): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  // The pattern matches slashes too, so that no other handler sees a misspelled address, which may contain a channel's credential.
  app.all(`${HOOKS_PATH}:channelId{.*}`, function receiveRequest({ env, req }) {
    const channelId = req.param("channelId");
    const isOne = channelId !== "" && !channelId.includes("/");
    receive(isOne ? channelId : undefined, new NodeExchange(env.incoming, env.outgoing));
    return req.method === "HEAD" ? createSentResponse() : RESPONSE_ALREADY_SENT;
  });
  return app;
}

/**
 * Returns a response to HEAD that tells `@hono/node-server` that the exchange writes the response. Hono copies the response to HEAD, and
 * node-server only recognizes the copy if the original was read.
 */
function createSentResponse(): Response {
  const response = new Response(null, RESPONSE_ALREADY_SENT);
  void response.body;
  return response;
}
