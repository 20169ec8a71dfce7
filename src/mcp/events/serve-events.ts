import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import { holds } from "../../http/callers/authorize.ts";
import { createStreamPlaces, type TakeStreamPlace } from "../../http/stream-places.ts";
import type { CreateError, McpExchange } from "../exchange.ts";
import {
  type EventsCaller,
  type EventsDeps,
  followParams,
  listEvents,
  listParams,
  pollEvents,
  pollParams,
} from "./events.ts";
import { EventsError } from "./revision.ts";
import { streamEvents } from "./stream-events.ts";
import {
  type SubscribeDeps,
  subscribe,
  subscribeParams,
  unsubscribe,
  unsubscribeParams,
} from "./subscribe.ts";

export interface EventsServerDeps extends EventsDeps, SubscribeDeps {
  /** Aborts when the gateway shuts down. */
  readonly stopping: AbortSignal;
}

const READ = "apps.read";
/** Permission of methods that make Inlet send requests, as of `POST /apps/{appId}/events/subscribe`. */
const WRITE = "apps.write";

/** Maximum number of open streams per worker and per caller. */
const STREAMS = { perWorker: 500, perCaller: 20 } as const;

/** Registers the methods of the events extension (SEP-3415). */
export function createServeEvents(deps: EventsServerDeps) {
  const takePlace = createStreamPlaces(STREAMS);
  return function serveEvents(server: Server, exchange: McpExchange, createError: CreateError): void {
    /** Registers a method, which requires a permission. Its errors become error responses. */
    function on<S extends z.ZodType>(
      method: string,
      permission: string,
      schema: S,
      act: (caller: EventsCaller, params: z.output<S>, context: ServerContext) => Promise<object>,
    ): void {
      server.setRequestHandler(method, { params: z.unknown() }, async (given, context) => {
        try {
          const params = schema.safeParse(given ?? {});
          if (!params.success) throw invalidParams(params.error);
          return { ...(await act(callerOf(exchange, context, deps, permission), params.data, context)) };
        } catch (error) {
          if (error instanceof EventsError) throw createError(error.code, error.message, error.data);
          throw error;
        }
      });
    }

    on("events/list", READ, listParams, (caller, params) => listEvents(deps, caller, params));
    on("events/poll", READ, pollParams, (caller, params) => pollEvents(deps, caller, params));
    on("events/subscribe", WRITE, subscribeParams, (caller, params) => subscribe(deps, caller, params));
    on("events/unsubscribe", WRITE, unsubscribeParams, (caller, params) => unsubscribe(deps, caller, params));
    on("events/stream", READ, followParams, async (caller, params, { mcpReq }) => {
      const release = takeOrThrow(takePlace, caller.principal);
      try {
        return await streamEvents(deps, caller, params, {
          requestId: mcpReq.id,
          notify: (method, fields) => mcpReq.notify({ method, params: { ...fields } }),
          isDrained: () => exchange.body?.isDrained() ?? true,
          stillAllowed: () => exchange.stillAllowed(READ).catch(() => false),
        });
      } finally {
        release();
      }
    });
  };
}

/** @throws EventsError -32012 if the caller lacks the permission */
function callerOf(
  { caller }: McpExchange,
  { mcpReq }: ServerContext,
  { stopping }: EventsServerDeps,
  permission: string,
): EventsCaller {
  if (!holds(caller, permission))
    throw new EventsError("forbidden", `This requires the permission ${permission}.`);
  const { organizationId, keyId, accountId } = caller;
  return {
    organizationId,
    author: caller,
    principal: `${organizationId}/${keyId ?? accountId}`,
    signal: AbortSignal.any([mcpReq.signal, stopping]),
  };
}

function invalidParams({ issues }: z.ZodError): EventsError {
  const findings = issues.map(({ path, message }) => `${path.join(".") || "params"}: ${message}`);
  return new EventsError("invalidParams", `The parameters are invalid. ${findings.join("; ")}`);
}

function takeOrThrow(take: TakeStreamPlace, principal: string): () => void {
  const taken = take(principal);
  if (typeof taken === "function") return taken;
  throw new EventsError(
    "resourceExhausted",
    "Too many event streams are open. Close one, or try again later.",
    {
      limit: "streams",
      max: STREAMS[taken],
    },
  );
}
