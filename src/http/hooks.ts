import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { getPath } from "hono/utils/url";
import { HOOKS_PATH, type ReceiveHook } from "./hook-exchange.ts";
import { NodeExchange } from "./node-exchange.ts";

/**
 * Creates the route of all channel addresses. It writes responses directly to Node's response object. The fast path may receive a request
 * before it comes to this route.
 */
export function createHooks(receive: ReceiveHook): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>({ getPath: getRoutePath });
  // Matches slashes too, because a misspelled address may contain a secret channel id, which no other handler should see.
  app.all(`${HOOKS_PATH}:channelId{.*}`, function receiveRequest({ env, req }) {
    // Accepts slashes around the id, because many senders join or complete addresses with them.
    const channelId = req.param("channelId").replace(/^\/|\/$/g, "");
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

/** Matches a request target under the path prefix of channel addresses, in origin form or absolute form (RFC 9112 section 3.2). */
const HOOK_TARGET = /^(?:https?:\/\/[^/?#]+)?(\/hooks\/[^?#]*)/;

/**
 * Returns the path of a request for the router. The path of a channel address is returned as sent. Otherwise `/hooks/../v1` would reach the
 * management API, even behind a proxy that only forwards paths under `/hooks/`.
 */
export function getRoutePath(
  request: Request,
  { env }: { readonly env?: Partial<HttpBindings> | undefined } = {},
): string {
  const target = env?.incoming?.url;
  const sent = HOOK_TARGET.exec(target ?? "")?.[1];
  if (sent !== undefined) return sent;
  const path = getPath(request);
  // Only the address as Inlet shows it is a channel's address, not `/x/../hooks/…` or `/%68ooks/…`.
  return target !== undefined && path.startsWith(HOOKS_PATH) ? target : path;
}
