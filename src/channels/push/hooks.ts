import { IncomingMessage } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { getPath } from "hono/utils/url";
import { type ChannelKindName, channelFacts } from "../../event/channel.ts";
import type { ChannelHandle } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import type { AnswerDirectly, Incoming, Outgoing } from "../../http/context.ts";
import { PlainReply } from "../../http/fast-path/plain-reply.ts";
import { PlainRequest } from "../../http/fast-path/plain-request.ts";
import {
  type ErrorCode,
  type ErrorResponse,
  STATUS_OF,
  toApiError,
  toErrorBody,
  toErrorHeaders,
} from "../../http/problem.ts";
import { requireOneHost, resolveRequestId } from "../../http/request.ts";
import { atEndOfTurn } from "../../lib/at-end-of-turn.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import type { ChannelRuntime, HookReply } from "../kind.ts";
import type { HookLimits } from "./rate-limit.ts";
import { findHeadRejection, readHeaderValues } from "./read-delivery.ts";
import type { CountedRejection } from "./receive-delivery.ts";

const HOOKS_PATH = "/hooks/";
/** Matches a channel address that is sent as a complete URL (RFC 9112 section 3.2.2, absolute form). */
const WHOLE_ADDRESS = /^https?:\/\/[^/]*\/hooks\//i;
/** Size of one read from a socket, in bytes. A longer body arrives in several reads. */
const MAX_SOCKET_READ_BYTES = 64 * 1024;
/**
 * How long to continue reading a body after an early response. If the socket closed at once, a sender that is still sending could miss the
 * response.
 */
const DRAIN_MS = 500;

export interface HooksDeps<C extends ChannelHandle = ChannelHandle> {
  /**
   * Returns the channel with this id, synchronously if it is cached.
   *
   * @throws UnavailableError when it cannot be looked up at the moment
   */
  readonly findChannel: (channelId: string) => C | undefined | Promise<C | undefined>;
  readonly runtimes: ReadonlyMap<ChannelKindName, ChannelRuntime<C>>;
  readonly limits: Pick<HookLimits, "checkArrival" | "clientOf">;
  /**
   * Called when a request to an existing channel is rejected outside `ingest`, for example because of its rate, size or content type.
   * `request` is a function because the request is only built if the recorder samples it.
   */
  readonly onRejected: (
    channel: C,
    arrivedAtMs: number,
    rejection: { readonly httpStatus: number; readonly reason: string },
    request: () => RawRequest,
  ) => void;
  readonly metrics: Pick<Metrics, "deliveries" | "countsOf" | "hookSeconds">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Creates the handler of all requests to channel addresses. It finds the channel and passes the request to the channel's kind. The address
 * is a credential, so it never appears in log lines or responses.
 *
 * The handler avoids `Request` and `Response`: building them and awaiting their promises would cost more CPU time than the write to Redis.
 * Hono only matches the one route.
 */
export function createHooks<C extends ChannelHandle>(deps: HooksDeps<C>): AnswerDirectly {
  const { findChannel, runtimes, limits, metrics, log } = deps;
  const app = new Hono<{ Bindings: Arrived }>({ getPath: parsePath });

  app.all(`${HOOKS_PATH}:channelId`, ({ env, req }) => {
    const exchange = createExchange(env as Arrived);
    const fail = (thrown: unknown): void => reject(exchange, toApiError(thrown), { cause: thrown });
    try {
      // The fast path has already rejected requests with repeated headers.
      if (!(exchange.incoming instanceof PlainRequest)) requireOneHost(exchange.incoming);
      const found = findChannel(req.param("channelId"));
      if (!(found instanceof Promise)) receive(found, exchange);
      // The fast path does not wait: it hands the request off to `node:http`, which looks the channel up again.
      else if (isUnread(exchange.incoming)) found.catch(() => {});
      else found.then((channel) => receive(channel, exchange)).catch(fail);
    } catch (error) {
      fail(error);
    }
    return RESPONSE_ALREADY_SENT;
  });

  app.notFound(({ env }) => {
    reject(createExchange(env as Arrived), NO_CHANNEL);
    return RESPONSE_ALREADY_SENT;
  });

  function receive(channel: C | undefined, exchange: Exchange): void {
    const runtime = channel && runtimes.get(channel.identity.kind);
    if (channel === undefined || runtime?.receive === undefined) {
      reject(exchange, NO_CHANNEL);
      return;
    }
    const { incoming, outgoing, sinceMs, requestId } = exchange;
    // The fast path only checks the head here. If the head is acceptable, `node:http` handles the request again and counts it.
    if (isUnread(incoming) && findHeadRejection(incoming, channel) === undefined) return;
    const fail = (thrown: unknown): void => reject(exchange, toApiError(thrown), { channel, cause: thrown });
    const answer = (reply: HookReply | ErrorResponse): void => {
      if ("code" in reply) {
        reject(exchange, reply, { channel });
        return;
      }
      try {
        send(exchange, reply);
        metrics.hookSeconds.observe("ok", (performance.now() - sinceMs) / 1000);
      } catch (error) {
        fail(error);
      }
    };
    try {
      const client = limits.clientOf(incoming);
      const tooMany = limits.checkArrival(channel, client);
      if (tooMany !== undefined) {
        reject(exchange, tooMany, { channel });
        return;
      }
      const reply = runtime.receive(channel, {
        incoming,
        outgoing: outgoing instanceof PlainReply ? undefined : outgoing,
        clientAddress: client.address,
        requestId,
      });
      if (reply instanceof Promise) reply.then(answer, fail);
      else answer(reply);
    } catch (error) {
      fail(error);
    }
  }

  function createExchange({ incoming, outgoing, sinceMs }: Arrived): Exchange {
    const given = incoming.headers["x-request-id"];
    const requestId = resolveRequestId(typeof given === "string" ? given : undefined, deps.clock());
    return { incoming, outgoing, requestId, sinceMs };
  }

  function reject(
    exchange: Exchange,
    rejection: ErrorResponse,
    { channel, cause }: RejectionContext<C> = {},
  ): void {
    if (channel !== undefined) count(channel, exchange, rejection);
    logRejection(exchange, rejection, { channel, cause });
    if (exchange.outgoing.headersSent) exchange.outgoing.destroy();
    else send(exchange, rejection === NO_CHANNEL ? NO_CHANNEL_REPLY : replyTo(rejection));
  }

  function count(channel: C, exchange: Exchange, rejection: ErrorResponse): void {
    const { identity } = channel;
    const result = toResult(rejection);
    if (!isCounted(rejection)) {
      metrics.deliveries.add(identity.kind, result);
      metrics.countsOf(identity)[result === "refused" ? "refused" : "failed"]++;
      notifyRejected(channel, exchange, rejection);
    }
    const outcome = rejection.code === "unauthenticated" ? "unverified" : result;
    metrics.hookSeconds.observe(outcome, (performance.now() - exchange.sinceMs) / 1000);
  }

  function notifyRejected(channel: C, { incoming, requestId }: Exchange, rejection: ErrorResponse): void {
    const arrivedAtMs = deps.clock();
    const httpStatus = STATUS_OF[rejection.code];
    deps.onRejected(channel, arrivedAtMs, { httpStatus, reason: formatReason(rejection) }, () => ({
      method: incoming.method ?? "",
      target: incoming.url ?? "/",
      headers: readHeaderValues(incoming),
      body: NO_BYTES,
      arrivedAtMs,
      clientAddress: limits.clientOf(incoming).address,
      requestId,
    }));
  }

  /**
   * Logs a rejected request. Rate-limited requests and unknown addresses are logged at debug level only, so that a flood cannot fill the
   * log.
   */
  function logRejection(
    exchange: Exchange,
    rejection: ErrorResponse,
    { channel, cause }: RejectionContext<C>,
  ): void {
    const { code, details } = rejection;
    const result = toResult(rejection);
    if (result !== "refused") {
      const level = result === "internal" ? "error" : "warn";
      log[level](
        { event: "hook.failed", ...createLogFields(exchange, code, channel), err: cause },
        "delivery failed",
      );
    } else if (channel === undefined) {
      if (log.isLevelEnabled("debug"))
        log.debug({ event: "hook.no_channel", ...createLogFields(exchange, code) }, "no such channel");
    } else if (code === "rate_limited") {
      if (log.isLevelEnabled("debug"))
        log.debug(
          { event: "hook.rate_limited", ...createLogFields(exchange, code, channel) },
          "delivery rejected",
        );
    } else if (log.isLevelEnabled("info")) {
      const reason = isCounted(rejection) ? rejection.reason : undefined;
      const facts = { event: "hook.refused", ...createLogFields(exchange, code, channel), details, reason };
      log.info(facts, "delivery rejected");
    }
  }

  const createLogFields = ({ incoming, requestId }: Exchange, code: ErrorCode, channel?: C) => ({
    requestId,
    code,
    method: incoming.method,
    ...(channel && channelFacts(channel.identity)),
    clientAddress: limits.clientOf(incoming).address,
  });

  const route = (arrived: Arrived): void => {
    const { url = "", method = "" } = arrived.incoming;
    // Hono's router only reads the method and the URL, so this object replaces a `Request`, which would be expensive to build.
    void app.fetch({ method, url } as Request, arrived);
  };
  const routeLater = atEndOfTurn(route);

  return (incoming, outgoing) => {
    const { url: target = "" } = incoming;
    const isWhole = !target.startsWith("/");
    if (isWhole ? !WHOLE_ADDRESS.test(target) : !target.startsWith(HOOKS_PATH)) return false;
    const arrived = { incoming, outgoing, sinceMs: performance.now() };
    if (isUnread(incoming)) {
      route(arrived);
      return outgoing.headersSent;
    }
    // A body larger than one socket read is still arriving, so deferring the request to the end of the tick gains nothing. Handling it now
    // can also free the connection sooner. If other requests are deferred, it is deferred too, because they may precede it on the same
    // connection.
    const isLong = Number(incoming.headers["content-length"]) > MAX_SOCKET_READ_BYTES;
    if (isLong && routeLater.isEmpty()) route(arrived);
    else routeLater(arrived);
    return true;
  };
}

interface Arrived {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly sinceMs: number;
}

interface Exchange extends Arrived {
  readonly requestId: string;
}

const isUnread = (incoming: Incoming): boolean =>
  incoming instanceof PlainRequest && incoming.bodyState === "unread";

interface RejectionContext<C> {
  readonly channel?: C | undefined;
  readonly cause?: unknown;
}

const NO_BYTES = Buffer.alloc(0);
const NO_CHANNEL: ErrorResponse = { code: "not_found", message: "There is no such channel.", headers: {} };
/** Response for an unknown address. It is built only once, so that guessing addresses costs the gateway little. */
const NO_CHANNEL_REPLY = replyTo(NO_CHANNEL);

const isCounted = (rejection: ErrorResponse): rejection is CountedRejection => "isCounted" in rejection;

function toResult({ code }: ErrorResponse): "internal" | "unavailable" | "refused" {
  return code === "internal" || code === "unavailable" ? code : "refused";
}

function formatReason({ message, details = [] }: ErrorResponse): string {
  if (details.length === 0) return message;
  return [message, ...details.map((one) => `${one.path} ${one.message}`)].join(" ");
}

function replyTo(rejection: ErrorResponse): HookReply {
  return {
    status: STATUS_OF[rejection.code],
    headers: { ...toErrorHeaders(rejection), "content-type": "application/json" },
    body: JSON.stringify(toErrorBody(rejection)),
  };
}

/** Returns the path of a request target in the same way as Hono. Most targets are a plain path that needs no decoding. */
function parsePath({ url: target }: Pick<Request, "url">): string {
  if (!target.startsWith("/")) return getPath({ url: target } as Request);
  if (target.includes("%") || target.includes("#"))
    return getPath({ url: `http://hooks${target}` } as Request);
  const end = target.indexOf("?");
  return end < 0 ? target : target.slice(0, end);
}

/** Headers of every response. A response may repeat text from the request, so it must not be cached or rendered by a browser. */
const COMMON_HEADERS = Object.entries({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
const COMMON_LIST = COMMON_HEADERS.flat();
const COMMON_LINES = COMMON_HEADERS.map(([name, value]) => `${name}: ${value}\r\n`).join("");

function send({ incoming, outgoing, requestId }: Exchange, { status, headers, body }: HookReply): void {
  const length = body === undefined ? "0" : String(Buffer.byteLength(body));
  if (outgoing instanceof PlainReply) {
    const lengthLine = status === 204 ? "" : `content-length: ${length}\r\n`;
    outgoing.send(status, `${COMMON_LINES}x-request-id: ${requestId}\r\n${lengthLine}`, headers, body);
    return;
  }
  // Node uses a flat list as it is, but checks an object entry by entry.
  const list = [...COMMON_LIST, "x-request-id", requestId];
  if (status !== 204) list.push("content-length", length);
  for (const name in headers) list.push(name, headers[name] ?? "");
  outgoing.writeHead(status, list);
  // The response is sent before the request body was read. Waiting one turn of the event loop lets Node read a body that has already
  // arrived. If this is the last response of the connection, Node closes the connection.
  if (incoming instanceof IncomingMessage && !incoming.complete && headers.connection !== "close")
    outgoing.on("finish", () => setImmediate(endReading, incoming));
  outgoing.end(body);
}

/** Closes the connection if the sender keeps sending a body after the response. Otherwise Node would read it until the request timeout. */
function endReading(incoming: IncomingMessage): void {
  // Returns before a timer is created, because the timer would keep the whole request in memory until it fires.
  if (incoming.complete) return;
  const timer = setTimeout(() => {
    if (!incoming.complete) incoming.socket.destroySoon();
  }, DRAIN_MS);
  timer.unref();
}
