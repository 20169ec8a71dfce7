import { LRUCache } from "lru-cache";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import type { ChannelKindName } from "../event/channel.ts";
import type { ChannelHandle } from "../event/ingest.ts";
import { createDeliveryFailure } from "../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import type { ErrorResponse } from "../http/errors.ts";
import type { HookExchange, HookReply, ReceiveHook } from "../http/hook-exchange.ts";
import { requireOneHost, resolveRequestId } from "../http/request.ts";
import type { Clock } from "../lib/clock.ts";
import { freeBuffer } from "../lib/free-buffer.ts";
import { upToEntries } from "../lib/up-to-entries.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { RejectedRequest } from "../verify/verify.ts";
import type { AnswerHandshake } from "./answer-handshake.ts";
import { atEndOfTurn } from "./at-end-of-turn.ts";
import { type BodyBudget, HeldBody } from "./body/body-budget.ts";
import { payloadTooLarge } from "./body/decode-body.ts";
import { readBody, unsupportedMediaType } from "./body/read-body.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { Arrival, Conclude } from "./conclude.ts";
import { type DeliveryResult, NO_CHANNEL, toFailure } from "./delivery-result.ts";
import type { DeliverySpans } from "./delivery-spans.ts";
import type { HookLimits } from "./hook-limits.ts";
import { MAX_CHECK_MS, type Normalizer } from "./normalizer.ts";
import type { BufferWhilePaused } from "./pause-buffer.ts";
import type { ReactFirst } from "./react-first.ts";
import type { Route } from "./route/route-result.ts";
import type { Writer } from "./write.ts";

/** The part of a channel kind that inspects the head of a request before its body is read. */
export interface PushRuntime {
  /**
   * Answers a request that is not a delivery. Returns `undefined` for a delivery, whose body is read next.
   *
   * @throws ApiError to reject the request
   */
  readonly answerHead?: (
    channel: ChannelHandle,
    exchange: HookExchange,
  ) => HookReply | ErrorResponse | undefined;
}

export interface ReceiveDeps {
  /**
   * Returns the channel with this id, without a promise if it is cached.
   *
   * @throws UnavailableError when it cannot be looked up at the moment
   */
  readonly findChannel: (
    channelId: string,
  ) => CompiledChannel | undefined | Promise<CompiledChannel | undefined>;
  /** The started channel kinds by name. Only kinds with `push` receive requests. */
  readonly runtimes: ReadonlyMap<ChannelKindName, { readonly push?: PushRuntime }>;
  readonly limits: HookLimits;
  readonly bodies: BodyBudget;
  readonly answerHandshake: AnswerHandshake;
  readonly reactFirst: ReactFirst;
  readonly bufferWhilePaused: BufferWhilePaused;
  readonly normalize: Normalizer;
  readonly publishNormalized: Writer["publishNormalized"];
  readonly route: Route;
  readonly quarantine: Pick<QuarantineStore, "put">;
  readonly conclude: Conclude["conclude"];
  /** `undefined` if the gateway exports no traces. */
  readonly spans?: DeliverySpans | undefined;
  readonly clock: Clock;
  /** Maximum time that a sender waits for the validation of its delivery, in ms. Default: `MAX_CHECK_MS`. */
  readonly maxCheckMs?: number | undefined;
}

/** Maximum number of bytes that one read from a socket returns. Longer bodies arrive in several reads. */
const MAX_SOCKET_READ_BYTES = 64 * 1024;
/** Minimum interval between stored examples of unverified deliveries, per channel. A shorter interval could fill the quarantine. */
const UNVERIFIED_EVERY_MS = 10_000;

type Step = DeliveryResult | Promise<DeliveryResult>;

/**
 * Creates the function that receives every request to a channel's address. The steps of a delivery follow in the order of this file:
 *
 * 1. `find` the channel.
 * 2. `checkHead`: the sender's rate limit, then method, content type and length.
 * 3. `read` the body within the memory budget.
 * 4. `verify` the sender, and answer handshakes.
 * 5. `admit`: the limits of the channel and its organization, then the channels to wake, then the pause.
 * 6. `publish`: normalize, count the items, write to Redis. An intake routes its items instead (`route/router.ts`).
 * 7. `finish`: conclude with metrics, record, log line and response.
 *
 * A channel's address is a credential, so it never appears in log lines or responses.
 */
export function createReceive(deps: ReceiveDeps): ReceiveHook {
  const { limits, bodies, normalize, conclude, spans, clock, maxCheckMs = MAX_CHECK_MS } = deps;
  const sampledAtMs = new LRUCache<number, number>(upToEntries(10_000));

  function receive({ channelId, exchange }: Received): void {
    const arrival = createArrival(exchange);
    const end = (result: DeliveryResult): void => finish(arrival, result);
    const fail = (thrown: unknown): void => finish(arrival, toFailure(thrown));
    try {
      const result = find(arrival, channelId);
      if (result instanceof Promise) result.then(end, fail);
      else end(result);
    } catch (thrown) {
      fail(thrown);
    }
  }

  function createArrival(exchange: HookExchange): Arrival {
    const given = exchange.headers["x-request-id"];
    const arrivedAtMs = clock();
    return {
      exchange,
      requestId: resolveRequestId(typeof given === "string" ? given : undefined, arrivedAtMs),
      arrivedAtMs,
      client: limits.clientOf(exchange),
      channel: undefined,
      held: undefined,
      request: undefined,
      delivery: undefined,
      trace: undefined,
    };
  }

  function find(arrival: Arrival, channelId: string | undefined): Step {
    requireOneHost(arrival.exchange.readHeaderValues());
    if (channelId === undefined) return NO_CHANNEL;
    return andThen(deps.findChannel(channelId), (channel) => checkHead(arrival, channel));
  }

  function checkHead(arrival: Arrival, channel: CompiledChannel | undefined): Step {
    const push = channel && deps.runtimes.get(channel.identity.kind)?.push;
    if (channel === undefined || push === undefined) return NO_CHANNEL;
    arrival.channel = channel;
    const { exchange } = arrival;
    if (spans !== undefined) arrival.trace = spans.startReceive(exchange.headers.traceparent, channel.config);
    const answer =
      limits.checkArrival(channel, arrival.client) ??
      push.answerHead?.(channel, exchange) ??
      findMethodRejection(exchange, channel) ??
      findHeadRejection(exchange, channel);
    if (answer === undefined) return read(arrival, channel);
    return "code" in answer ? { kind: "refused", response: answer } : { kind: "replied", reply: answer };
  }

  function read(arrival: Arrival, channel: CompiledChannel): Step {
    const { exchange, client, arrivedAtMs, requestId, trace } = arrival;
    const { method, target } = exchange;
    const clientAddress = client.address;
    const traceId = trace?.traceId;
    arrival.held = new HeldBody(bodies, channel.identity.organizationId);
    return andThen(readBody(exchange, channel.limits.maxBodyBytes, arrival.held), (body) => {
      const headers = exchange.readHeaderValues();
      arrival.request = { method, target, headers, body, arrivedAtMs, clientAddress, requestId, traceId };
      return verify(arrival, channel, arrival.request);
    });
  }

  function verify(arrival: Arrival, channel: CompiledChannel, request: RawRequest): Step {
    const { sender } = channel;
    const open = sender.findOpenHandshake?.(request);
    if (open !== undefined) return answerHandshake(channel, request, open);
    return andThen(sender.verify(request), (verified) => {
      if (!verified.ok) return rejectUnverified(channel, request, verified.error);
      const handshake = sender.findHandshake(request, verified.value);
      if (handshake !== undefined) return answerHandshake(channel, request, handshake);
      if (sender.deliveryMethods.includes(request.method))
        return admit(arrival, channel, addTrace(arrival, verified.value));
      // The channel accepts this method only for handshakes, and the request is none.
      const rejected = sender.reject(request, "the request matches no handshake of the channel");
      return rejectUnverified(channel, request, rejected);
    });
  }

  async function answerHandshake(
    channel: CompiledChannel,
    request: RawRequest,
    handshake: MatchedHandshake,
  ): Promise<DeliveryResult> {
    const reply = await deps.answerHandshake(channel, request, handshake, NEVER_ABORTED);
    if (!reply.ok) return rejectUnverified(channel, request, channel.sender.reject(request, reply.error));
    return { kind: "handshake", reply: reply.value };
  }

  /** Rejects an unverified request with 401. Stores an example in the background, and the response does not depend on that write. */
  function rejectUnverified(
    { identity }: CompiledChannel,
    { arrivedAtMs }: RawRequest,
    { message, redacted }: RejectedRequest,
  ): DeliveryResult {
    const before = sampledAtMs.get(identity.number);
    // `Math.abs` lets examples be stored after the clock was set back.
    if (before === undefined || Math.abs(arrivedAtMs - before) >= UNVERIFIED_EVERY_MS) {
      sampledAtMs.set(identity.number, arrivedAtMs);
      const failure = createDeliveryFailure("signature_invalid", message);
      const sample = { delivery: redacted(), items: [{ failure, keep: "newest" }] } as const;
      deps.quarantine.put(identity, sample, NEVER_ABORTED).catch(() => {});
    }
    return { kind: "unverified", message };
  }

  function admit(arrival: Arrival, channel: CompiledChannel, delivery: VerifiedDelivery): Step {
    arrival.delivery = delivery;
    const response = limits.checkVerified(channel);
    if (response !== undefined) return { kind: "refused", response };
    if (channel.wakes === undefined && channel.signals === undefined)
      return publishUnlessPaused(arrival, channel, delivery);
    // A pause of this channel does not stop its wakes, because a provider may announce a change only once.
    return deps.reactFirst(channel, delivery, () => publishUnlessPaused(arrival, channel, delivery));
  }

  function publishUnlessPaused(arrival: Arrival, channel: CompiledChannel, delivery: VerifiedDelivery): Step {
    if (channel.pause === undefined) return publish(arrival, channel, delivery);
    return deps
      .bufferWhilePaused(channel, delivery, NEVER_ABORTED)
      .then((buffered) => buffered ?? publish(arrival, channel, delivery));
  }

  function publish(arrival: Arrival, channel: CompiledChannel, delivery: VerifiedDelivery): Step {
    if (arrival.trace !== undefined) arrival.trace.publishedAtMs = performance.now();
    if (channel.routes !== undefined) return deps.route(channel, channel.routes, delivery, limits);
    return andThen(normalize(channel.rules, delivery, undefined, maxCheckMs), (normalized) => {
      arrival.held?.endParsing();
      if (normalized.kind === "normalized") limits.countItems(channel, normalized.received);
      return deps.publishNormalized(channel, delivery, NEVER_ABORTED, normalized);
    });
  }

  function finish(arrival: Arrival, result: DeliveryResult): void {
    conclude(arrival, result);
    arrival.held?.release();
    // After success, the body is no longer used and its memory can be freed. After a failure, the body may still be in use.
    if (result.kind === "accepted" && arrival.request !== undefined) freeBuffer(arrival.request.body);
  }

  const receiveLater = atEndOfTurn(receive);
  return function receiveHook(channelId, exchange) {
    // A body larger than one socket read is still arriving, so deferring the request to the end of the tick gains nothing. Handling it now
    // can also free the connection sooner. If other requests are deferred, it is deferred too, because they may precede it on the same
    // connection.
    const isLong = Number(exchange.headers["content-length"]) > MAX_SOCKET_READ_BYTES;
    if (isLong && receiveLater.isEmpty()) receive({ channelId, exchange });
    else receiveLater({ channelId, exchange });
  };
}

interface Received {
  readonly channelId: string | undefined;
  readonly exchange: HookExchange;
}

/** Never aborts, because a delivery is processed even if its sender disconnects after sending the body. */
const NEVER_ABORTED = { signal: new AbortController().signal };

/**
 * Calls `next` with the value, without a promise if possible. For most deliveries, a chain of promises would take as much CPU time as
 * verification.
 */
function andThen<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Adds the context of a sampled delivery, which its events will carry. */
const addTrace = ({ trace }: Arrival, delivery: VerifiedDelivery): VerifiedDelivery =>
  trace === undefined ? delivery : { ...delivery, traceparent: trace.traceparent };

function findMethodRejection(
  { method }: HookExchange,
  { methods }: ChannelHandle,
): ErrorResponse | undefined {
  return methods.includes(method) ? undefined : methodNotAllowed(methods);
}

/** Returns a 405 response that lists the methods allowed for the channel. */
export function methodNotAllowed(methods: readonly string[]): ErrorResponse {
  const allow = methods.join(", ");
  return { code: "method_not_allowed", message: `This address only accepts ${allow}.`, headers: { allow } };
}

/** Returns a 413 or 415 response if the request can be rejected before its body is read. */
function findHeadRejection({ headers }: HookExchange, channel: ChannelHandle): ErrorResponse | undefined {
  if (!channel.acceptsContentType(headers["content-type"]))
    return unsupportedMediaType("This Content-Type is not accepted.");
  const { maxBodyBytes } = channel.limits;
  return Number(headers["content-length"] ?? 0) > maxBodyBytes ? payloadTooLarge(maxBodyBytes) : undefined;
}
