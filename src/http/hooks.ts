import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { HOOKS_PATH, type ReceiveHook } from "./hook-exchange.ts";
import { NodeExchange } from "./node-exchange.ts";

/** Creates the route of all channel addresses. It writes responses directly to Node's response object. */
export function createHooks(receive: ReceiveHook): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  // Matches slashes too, because a misspelled address may contain a secret channel id, which no other handler should see.
  app.all(`${HOOKS_PATH}:channelId{.*}`, function receiveRequest({ env, req }) {
    const channelId = req.param("channelId");
    const isOne = channelId !== "" && !channelId.includes("/");
    receive(isOne ? channelId : undefined, new NodeExchange(env.incoming, env.outgoing));
    return req.method === "HEAD" ? createSentResponse() : RESPONSE_ALREADY_SENT;
  });
  return app;
}

/**
 * Returns a marker that tells `@hono/node-server` that the response is written elsewhere. For HEAD requests, Hono copies the marker. The
 * copy is only recognized if the original was read.
 */
function createSentResponse(): Response {
  const response = new Response(null, RESPONSE_ALREADY_SENT);
  void response.body;
  return response;
}
