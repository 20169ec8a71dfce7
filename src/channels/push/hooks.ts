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
  bodyOf,
  type ErrorCode,
  headersOf,
  type ErrorResponse,
  STATUS_OF,
  toApiError,
} from "../../http/problem.ts";
import { requestIdOf, requireOneHost } from "../../http/request.ts";
import { atEndOfTurn } from "../../lib/at-end-of-turn.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import type { ChannelRuntime, HookReply } from "../kind.ts";
import type { HookLimits } from "./rate-limit.ts";
import { findRefusal, valuesOf } from "./read-delivery.ts";
import type { CountedRefusal } from "./receive-delivery.ts";

/** The path before the channel's id. */
const HOOKS_PATH = "/hooks/";
/** A target may be a whole address (RFC 9112 section 3.2.2). */
const WHOLE_ADDRESS = /^https?:\/\/[^/]*\/hooks\//i;
/** As much as a socket reads at once: a body that is announced as longer comes in pieces. */
const MOST_READ_BYTES = 64 * 1024;
/** A sender that was answered may still be sending; for so long it is listened to, lest it misses the answer. */
const DRAIN_MS = 500;

export interface HooksDeps<C extends ChannelHandle = ChannelHandle> {
  /**
   * The channel behind an address, at once where it is known.
   *
   * @throws UnavailableError when that cannot be known now.
   */
  readonly findChannel: (channelId: string) => C | undefined | Promise<C | undefined>;
  readonly runtimes: ReadonlyMap<ChannelKindName, ChannelRuntime<C>>;
  readonly limits: Pick<HookLimits, "arrived" | "clientOf">;
  /** Told of each request to a channel that is refused outside `ingest`; `request` is asked for where a record of it is kept. */
  readonly onRefused: (
    channel: C,
    arrivedAtMs: number,
    refusal: { readonly httpStatus: number; readonly reason: string },
    request: () => RawRequest,
  ) => void;
  readonly metrics: Pick<Metrics, "deliveries" | "countsOf" | "hookSeconds">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The addresses of all push channels: finds the channel, hands the request to its kind. An address is a credential: it
 * stands in no log line and in no answer.
 *
 * An app of one route, which is given no more of a request than routing asks for, and whose handlers answer by themselves: web
 * requests and responses, and the promises between them, would cost a delivery more than its way to Redis.
 */
export function createHooks<C extends ChannelHandle>(deps: HooksDeps<C>): AnswerDirectly {
  const { findChannel, runtimes, limits, metrics, log } = deps;
  const app = new Hono<{ Bindings: Arrived }>({ getPath: pathOf });

  app.all(`${HOOKS_PATH}:channelId`, ({ env, req }) => {
    const exchange = begin(env as Arrived);
    const fail = (thrown: unknown): void => refuse(exchange, toApiError(thrown), { cause: thrown });
    try {
      // On the fast path each header stands there once.
      if (!(exchange.incoming instanceof PlainRequest)) requireOneHost(exchange.incoming);
      const found = findChannel(req.param("channelId"));
      if (!(found instanceof Promise)) receive(found, exchange);
      // By then it has been left to Node, for which the channel is asked for anew.
      else if (isUnread(exchange.incoming)) found.catch(() => {});
      else found.then((channel) => receive(channel, exchange)).catch(fail);
    } catch (error) {
      fail(error);
    }
    return RESPONSE_ALREADY_SENT;
  });

  app.notFound(({ env }) => {
    refuse(begin(env as Arrived), NO_CHANNEL);
    return RESPONSE_ALREADY_SENT;
  });

  function receive(channel: C | undefined, exchange: Exchange): void {
    const runtime = channel && runtimes.get(channel.identity.kind);
    if (channel === undefined || runtime?.receive === undefined) {
      refuse(exchange, NO_CHANNEL);
      return;
    }
    const { incoming, outgoing, sinceMs, requestId } = exchange;
    // Not refused by its head: nothing is counted yet, and it is left to Node.
    if (isUnread(incoming) && findRefusal(incoming, channel) === undefined) return;
    const fail = (thrown: unknown): void => refuse(exchange, toApiError(thrown), { channel, cause: thrown });
    const answer = (reply: HookReply | ErrorResponse): void => {
      if ("code" in reply) {
        refuse(exchange, reply, { channel });
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
      const tooMany = limits.arrived(channel, client);
      if (tooMany !== undefined) {
        refuse(exchange, tooMany, { channel });
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

  function begin({ incoming, outgoing, sinceMs }: Arrived): Exchange {
    const given = incoming.headers["x-request-id"];
    const requestId = requestIdOf(typeof given === "string" ? given : undefined, deps.clock());
    return { incoming, outgoing, requestId, sinceMs };
  }

  /** Counts, logs and answers what was not accepted. */
  function refuse(exchange: Exchange, refusal: ErrorResponse, { channel, cause }: Refused<C> = {}): void {
    if (channel !== undefined) count(channel, exchange, refusal);
    logRefusal(exchange, refusal, { channel, cause });
    if (exchange.outgoing.headersSent) exchange.outgoing.destroy();
    else send(exchange, refusal === NO_CHANNEL ? NO_CHANNEL_REPLY : replyTo(refusal));
  }

  function count(channel: C, exchange: Exchange, refusal: ErrorResponse): void {
    const { identity } = channel;
    const result = resultOf(refusal);
    if (!isCounted(refusal)) {
      metrics.deliveries.add(identity.kind, result);
      metrics.countsOf(identity)[result === "refused" ? "refused" : "failed"]++;
      tellRefused(channel, exchange, refusal);
    }
    const outcome = refusal.code === "unauthenticated" ? "unverified" : result;
    metrics.hookSeconds.observe(outcome, (performance.now() - exchange.sinceMs) / 1000);
  }

  function tellRefused(channel: C, { incoming, requestId }: Exchange, refusal: ErrorResponse): void {
    const arrivedAtMs = deps.clock();
    const httpStatus = STATUS_OF[refusal.code];
    deps.onRefused(channel, arrivedAtMs, { httpStatus, reason: reasonOf(refusal) }, () => ({
      method: incoming.method ?? "",
      target: incoming.url ?? "/",
      headers: valuesOf(incoming),
      body: NO_BYTES,
      arrivedAtMs,
      clientAddress: limits.clientOf(incoming).address,
      requestId,
    }));
  }

  /** Guessed addresses and floods must not fill the log, nor cost what a line costs. */
  function logRefusal(exchange: Exchange, refusal: ErrorResponse, { channel, cause }: Refused<C>): void {
    const { code, details } = refusal;
    const result = resultOf(refusal);
    if (result !== "refused") {
      const level = result === "internal" ? "error" : "warn";
      log[level]({ event: "hook.failed", ...lineOf(exchange, code, channel), err: cause }, "delivery failed");
    } else if (channel === undefined) {
      if (log.isLevelEnabled("debug"))
        log.debug({ event: "hook.no_channel", ...lineOf(exchange, code) }, "no such channel");
    } else if (code === "rate_limited") {
      if (log.isLevelEnabled("debug"))
        log.debug({ event: "hook.rate_limited", ...lineOf(exchange, code, channel) }, "delivery refused");
    } else if (log.isLevelEnabled("info")) {
      const reason = isCounted(refusal) ? refusal.reason : undefined;
      const facts = { event: "hook.refused", ...lineOf(exchange, code, channel), details, reason };
      log.info(facts, "delivery refused");
    }
  }

  const lineOf = ({ incoming, requestId }: Exchange, code: ErrorCode, channel?: C) => ({
    requestId,
    code,
    method: incoming.method,
    ...(channel && channelFacts(channel.identity)),
    clientAddress: limits.clientOf(incoming).address,
  });

  const route = (arrived: Arrived): void => {
    const { url = "", method = "" } = arrived.incoming;
    // Routing reads nothing else of a request.
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
    // What comes in pieces has nothing of waiting for the others, and where its head is refused the connection ends for less at once.
    // Behind others it waits with them: they may have come before it over the same connection.
    const isLong = Number(incoming.headers["content-length"]) > MOST_READ_BYTES;
    if (isLong && routeLater.isEmpty()) route(arrived);
    else routeLater(arrived);
    return true;
  };
}

/** One request, what answers it, and when it came. */
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

/** A channel that refuses, and an error that it refuses for. */
interface Refused<C> {
  readonly channel?: C | undefined;
  readonly cause?: unknown;
}

const NO_BYTES = Buffer.alloc(0);
const NO_CHANNEL: ErrorResponse = { code: "not_found", message: "There is no such channel.", headers: {} };
/** Made once: guessing addresses must cost the gateway as little as can be. */
const NO_CHANNEL_REPLY = replyTo(NO_CHANNEL);

const isCounted = (refusal: ErrorResponse): refusal is CountedRefusal => "isCounted" in refusal;

function resultOf({ code }: ErrorResponse): "internal" | "unavailable" | "refused" {
  return code === "internal" || code === "unavailable" ? code : "refused";
}

function reasonOf({ message, details = [] }: ErrorResponse): string {
  if (details.length === 0) return message;
  return [message, ...details.map((one) => `${one.path} ${one.message}`)].join(" ");
}

function replyTo(refusal: ErrorResponse): HookReply {
  return {
    status: STATUS_OF[refusal.code],
    headers: { ...headersOf(refusal), "content-type": "application/json" },
    body: JSON.stringify(bodyOf(refusal)),
  };
}

/** As Hono reads the path of a whole address. Nearly all targets are a path, with nothing in it to be decoded. */
function pathOf({ url: target }: Pick<Request, "url">): string {
  if (!target.startsWith("/")) return getPath({ url: target } as Request);
  if (target.includes("%") || target.includes("#"))
    return getPath({ url: `http://hooks${target}` } as Request);
  const end = target.indexOf("?");
  return end < 0 ? target : target.slice(0, end);
}

/** No cache keeps an answer, and no browser renders it: it may repeat what was sent. */
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
  // Node takes a list as it is, where it would look at each member of an object.
  const list = [...COMMON_LIST, "x-request-id", requestId];
  if (status !== 204) list.push("content-length", length);
  for (const name in headers) list.push(name, headers[name] ?? "");
  outgoing.writeHead(status, list);
  // Refused, or answered for what stands in its head. A body that has come with it is read by the next turn of the event loop. Where
  // the answer is the last of its connection, Node ends that.
  if (incoming instanceof IncomingMessage && !incoming.complete && headers.connection !== "close")
    outgoing.on("finish", () => setImmediate(endReading, incoming));
  outgoing.end(body);
}

/** Node goes on reading what nobody wants, for as long as a request may take. */
function endReading(incoming: IncomingMessage): void {
  // A timer would keep all that hangs on a request until it is due.
  if (incoming.complete) return;
  const timer = setTimeout(() => {
    if (!incoming.complete) incoming.socket.destroySoon();
  }, DRAIN_MS);
  timer.unref();
}
