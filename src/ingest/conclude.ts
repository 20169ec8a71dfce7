import type { Answer } from "../event/answer.ts";
import { type ChannelIdentity, channelFacts } from "../event/channel.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { IngestResult } from "../event/ingest.ts";
import { isListed, type Outcome, type PublishedStatus } from "../event/outcome.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import {
  type ErrorCode,
  type ErrorResponse,
  STATUS_OF,
  toApiError,
  toErrorBody,
  toErrorHeaders,
} from "../http/errors.ts";
import type { HookExchange, HookReply } from "../http/hook-exchange.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { Clock } from "../lib/clock.ts";
import { createRepeatedLines } from "../lib/repeated-lines.ts";
import type { Log } from "../log.ts";
import {
  countLatency,
  countQuarantined,
  countRejection,
  countType,
  type EventCounts,
} from "../metrics/event-counts.ts";
import type { Metrics } from "../metrics.ts";
import type { HeldBody } from "./body/body-budget.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import type { DeliverySpans, SampledTrace, SpanResult } from "./delivery-spans.ts";
import type { RouteResult } from "./route/route-result.ts";

/**
 * Everything that can happen to a delivery.
 *
 * - `replied`: the channel kind has answered a request that is not a delivery.
 * - `refused`: the request was rejected because of its head, its body or a limit.
 * - `routed`: the items of an intake were written to the channels of installs, which have counted and recorded them.
 * - `failed`: the result is not certain (503), or Inlet has a bug (500).
 */
export type DeliveryResult =
  | IngestResult
  | Extract<RouteResult, { kind: "routed" }>
  | { readonly kind: "replied"; readonly reply: HookReply }
  | { readonly kind: "refused" | "failed"; readonly response: ErrorResponse };

/** State of one request to a channel's address, from its head to its response. Each step of `receive` adds its result. */
export interface Arrival {
  readonly exchange: HookExchange;
  readonly requestId: string;
  readonly arrivedAtMs: number;
  readonly client: ClientAddress;
  channel: CompiledChannel | undefined;
  /** Memory that the request's body counts against its organization's limit. */
  held: HeldBody | undefined;
  /** The complete request. */
  request: RawRequest | undefined;
  /** The delivery, after its sender was verified. */
  delivery: VerifiedDelivery | undefined;
  /** Set if the delivery is traced. */
  trace: SampledTrace | undefined;
}

export interface ConcludeDeps {
  readonly metrics: Pick<
    Metrics,
    | "deliveries"
    | "deliveriesMissed"
    | "events"
    | "quarantined"
    | "unsetAttributes"
    | "countsOf"
    | "hookSeconds"
  >;
  readonly recorder: Pick<DeliveryRecorder, "settled" | "rejected" | "answeredHandshake">;
  /** `undefined` if the gateway exports no traces. */
  readonly spans?: DeliverySpans | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export type Conclude = ReturnType<typeof createConclude>;

/** Creates the functions that end a delivery. Only these functions write its metrics, record, log line and response. */
export function createConclude({ metrics, recorder, spans, clock, log }: ConcludeDeps) {
  const noteUnavailable = createRepeatedLines();

  /** Ends a request to a channel's address and sends the response. */
  function conclude(arrival: Arrival, result: DeliveryResult): void {
    const { channel, exchange, requestId, trace } = arrival;
    const response = toResponse(channel, result);
    const counts = channel && metrics.countsOf(channel.identity);
    if (channel !== undefined && counts !== undefined) {
      countResult(channel, result, counts);
      record(arrival, channel, result);
    }
    if ("code" in response) logRejection(arrival, response, result);
    try {
      if (exchange.hasReplied) exchange.abort();
      else exchange.reply("code" in response ? toErrorReply(response, trace?.traceId) : response, requestId);
    } catch (error) {
      // Sending the response failed, for example because a handshake contains an invalid header value.
      if (result.kind === "failed") exchange.abort();
      else conclude(arrival, toFailure(error));
      return;
    }
    if (trace !== undefined && channel !== undefined)
      spans?.endReceive(channel, arrival, trace, toSpanResult(result, response));
    if (counts === undefined) return;
    const durationMs = performance.now() - exchange.sinceMs;
    metrics.hookSeconds.observe(durationMs / 1000, toOutcomeLabel(response), trace?.traceId);
    if (result.kind === "accepted" || result.kind === "routed" || result.kind === "failed")
      countLatency(counts, durationMs);
  }

  /** Ends a delivery that the gateway has fetched. No response is sent. */
  function concludeFetched(channel: CompiledChannel, delivery: VerifiedDelivery, result: IngestResult): void {
    if (delivery.traceparent !== undefined) spans?.endFetched(channel, delivery, toSpanResult(result));
    if (delivery.reconciled === undefined || result.kind !== "accepted") countResult(channel, result);
    else if (!countReconciled(channel, result)) return;
    recorder.settled(channel, delivery, result);
  }

  /** Ends the part of an intake's delivery that the channel of an install has received. */
  function concludeRouted(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    request: RawRequest,
  ): void {
    if (delivery.traceparent !== undefined) spans?.endRouted(channel, delivery, toSpanResult(result));
    countResult(channel, result);
    recorder.settled(channel, delivery, result, request);
  }

  /** Counts the result of a delivery. */
  function countResult(
    channel: Pick<CompiledChannel, "identity">,
    result: DeliveryResult,
    counts: EventCounts = metrics.countsOf(channel.identity),
  ): void {
    if (result.kind === "replied") return;
    if (result.kind === "accepted") {
      counts.received += result.outcome.received;
      if (result.isCounted !== true) countAccepted(channel, counts, result);
      return;
    }
    metrics.deliveries.add(channel.identity.kind, toDeliveryLabel(result));
    switch (result.kind) {
      case "routed":
        counts.accepted++;
        return;
      case "handshake":
        counts.handshake++;
        return;
      case "unverified":
        counts.unverified++;
        countRejection(counts, STATUS_OF.unauthenticated);
        return;
      case "refused":
      case "failed":
        counts[result.kind]++;
        countRejection(counts, STATUS_OF[result.response.code]);
        return;
      case "rejected":
      case "tooManyItems":
        counts.refused++;
        countRejection(counts, STATUS_OF[REJECTION_CODES[result.kind]]);
        return;
      default:
        result satisfies never;
    }
  }

  /** Counts an accepted delivery, except for its received items. */
  function countAccepted(
    { identity }: Pick<CompiledChannel, "identity">,
    counts: EventCounts,
    { outcome }: Pick<Extract<IngestResult, { kind: "accepted" }>, "outcome">,
  ): void {
    metrics.deliveries.add(identity.kind, "accepted");
    counts.accepted++;
    countEvents(identity, counts, outcome);
    countFailures(identity, counts, outcome);
  }

  /** Counts a delivery that was stored until now. Its items were counted as received when it arrived. */
  function countDrained(channel: Pick<CompiledChannel, "identity">, result: IngestResult): void {
    const counts = metrics.countsOf(channel.identity);
    if (result.kind === "accepted") countAccepted(channel, counts, result);
    // The delivery goes to quarantine, because its sender already has a response.
    else countQuarantined(counts, "invalid_body");
  }

  /** Ends a redrive, or the first processing of a delivery that was buffered during a pause. */
  function concludeRedriven(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    { wasPaused = false }: { readonly wasPaused?: boolean },
  ): void {
    if (delivery.traceparent !== undefined) spans?.endRedrive(channel, delivery, toSpanResult(result));
    if (wasPaused) countDrained(channel, result);
    // Its delivery and its failed items were counted when they arrived.
    else if (result.kind === "accepted") {
      const status = delivery.reconciled === undefined ? "published" : "recovered";
      countEvents(channel.identity, metrics.countsOf(channel.identity), result.outcome, status);
    }
  }

  /** Ends the routing of a delivery that its intake has buffered during a pause. */
  function concludeDrained(intake: CompiledChannel, delivery: VerifiedDelivery, result: RouteResult): void {
    if (delivery.traceparent !== undefined) spans?.endRedrive(intake, delivery, toSpanResult(result));
  }

  /**
   * Counts the missed events that a comparison with the provider's API has found. Events that the channel had received are not counted again. Returns false
   * if there is nothing else.
   */
  function countReconciled(
    { identity }: Pick<CompiledChannel, "identity">,
    result: Extract<IngestResult, { kind: "accepted" }>,
  ): boolean {
    const { published, quarantined, events } = result.outcome;
    const { kind } = identity;
    if (published + quarantined === 0) return false;
    const counts = metrics.countsOf(identity);
    counts.received += published + quarantined;
    const missed = events.filter(({ status }) => status !== "duplicate");
    countEvents(identity, counts, { published, duplicates: 0, ignored: 0, events: missed }, "recovered");
    countFailures(identity, counts, result.outcome);
    if (published > 0) metrics.deliveriesMissed.add(kind, "recovered");
    else if (isListed(result.outcome)) metrics.deliveriesMissed.add(kind, "listed");
    return true;
  }

  function countEvents(
    { kind }: ChannelIdentity,
    counts: EventCounts,
    {
      published,
      duplicates,
      ignored,
      events,
    }: Pick<Outcome, "published" | "duplicates" | "ignored" | "events">,
    status: PublishedStatus = "published",
  ): void {
    for (const event of events) countType(counts, event.type)[event.status]++;
    counts.ignored += ignored;
    if (published > 0) metrics.events.add(kind, status, published);
    if (duplicates > 0) metrics.events.add(kind, "duplicate", duplicates);
    if (ignored > 0) metrics.events.add(kind, "ignored", ignored);
  }

  function countFailures(
    { kind }: ChannelIdentity,
    counts: EventCounts,
    { quarantine }: Pick<Outcome, "quarantine">,
  ): void {
    for (const { reason } of quarantine) {
      countQuarantined(counts, reason);
      metrics.quarantined.add(kind, reason);
    }
  }

  /** Counts items that an intake holds. */
  function countHeld({ identity }: Pick<CompiledChannel, "identity">, reason: string, items: number): void {
    const counts = metrics.countsOf(identity);
    counts.received += items;
    countQuarantined(counts, reason, items);
  }

  function record(arrival: Arrival, channel: CompiledChannel, result: DeliveryResult): void {
    const { arrivedAtMs, request, delivery } = arrival;
    switch (result.kind) {
      case "accepted":
      case "rejected":
      case "tooManyItems":
        if (delivery !== undefined) recorder.settled(channel, delivery, result, request);
        return;
      case "handshake":
        recorder.answeredHandshake(channel, toRawRequest(arrival), result.reply.status);
        return;
      case "unverified": {
        const rejection = { httpStatus: STATUS_OF.unauthenticated, reason: result.message };
        recorder.rejected(channel, arrivedAtMs, rejection, () => toRawRequest(arrival));
        return;
      }
      case "refused":
      case "failed": {
        const { response } = result;
        const rejection = { httpStatus: STATUS_OF[response.code], reason: formatReason(response) };
        recorder.rejected(channel, clock(), rejection, () => toRawRequest(arrival));
        return;
      }
      case "routed":
      case "replied":
        return;
      default:
        result satisfies never;
    }
  }

  /**
   * Logs a rejected request. Frequent rejections, such as unknown addresses, are logged at debug level, so that a flood cannot fill the
   * log.
   */
  function logRejection(arrival: Arrival, response: ErrorResponse, result: DeliveryResult): void {
    const { code, details } = response;
    if (isServerError(response)) {
      const err = response instanceof Error ? (response.cause ?? response) : undefined;
      const line = { event: "hook.failed", ...createLogFields(arrival, code), err, count: 1 };
      if (code === "internal") log.error(line, "delivery failed");
      else
        noteUnavailable(String(err), (count) => {
          line.count = count;
          log.warn(line, "delivery failed");
        });
    } else if (arrival.channel === undefined) {
      if (log.isLevelEnabled("debug"))
        log.debug({ event: "hook.no_channel", ...createLogFields(arrival, code) }, "no such channel");
    } else if (code === "rate_limited") {
      if (log.isLevelEnabled("debug"))
        log.debug({ event: "hook.rate_limited", ...createLogFields(arrival, code) }, "delivery rejected");
    } else if (log.isLevelEnabled("info")) {
      const reason = result.kind === "unverified" ? result.message : undefined;
      const facts = { event: "hook.refused", ...createLogFields(arrival, code), details, reason };
      log.info(facts, "delivery rejected");
    }
  }

  /** Counts attributes that definitions should set, but for which the items have no usable value. */
  function countUnset(
    { identity }: Pick<CompiledChannel, "identity">,
    events: readonly OutgoingEvent[],
  ): void {
    for (const { unset = [] } of events)
      for (const attribute of unset) metrics.unsetAttributes.inc({ kind: identity.kind, attribute });
  }

  return {
    conclude,
    concludeFetched,
    concludeRouted,
    concludeRedriven,
    concludeDrained,
    countResult,
    countDrained,
    countHeld,
    countUnset,
  };
}

/** Error codes of deliveries that the channel's settings reject. */
const REJECTION_CODES = { rejected: "invalid_parameters", tooManyItems: "payload_too_large" } as const;

const NO_BYTES = Buffer.alloc(0);
const NO_HEADERS = {};
const JSON_TYPE = { "content-type": "application/json" };
const ACCEPTED: HookReply = { status: 200, headers: NO_HEADERS };
const NO_CHANNEL_RESPONSE: ErrorResponse = {
  code: "not_found",
  message: "There is no such channel.",
  headers: NO_HEADERS,
};
/** Result for an unknown address. It is a constant, so that requests with guessed addresses cost little CPU time. */
export const NO_CHANNEL: DeliveryResult = { kind: "refused", response: NO_CHANNEL_RESPONSE };
const NO_CHANNEL_REPLY = buildErrorReply(NO_CHANNEL_RESPONSE);

/** Converts a thrown value to a result. */
export function toFailure(thrown: unknown): DeliveryResult {
  const response = toApiError(thrown);
  return { kind: isServerError(response) ? "failed" : "refused", response };
}

const isServerError = ({ code }: ErrorResponse): boolean => code === "internal" || code === "unavailable";

const toDeliveryLabel = (result: DeliveryResult): string =>
  result.kind === "failed" ? result.response.code : result.kind;

const toSpanResult = (result: DeliveryResult, response?: HookReply | ErrorResponse): SpanResult => ({
  result: toDeliveryLabel(result),
  outcome: result.kind === "accepted" || result.kind === "routed" ? result.outcome : undefined,
  status: response && ("code" in response ? STATUS_OF[response.code] : response.status),
});

function toOutcomeLabel(response: HookReply | ErrorResponse): string {
  if (!("code" in response)) return "ok";
  if (isServerError(response)) return response.code;
  return response.code === "unauthenticated" ? "unverified" : "refused";
}

/** Returns the response to a delivery. Status 200 promises that every event was written to its topic. */
function toResponse(channel: CompiledChannel | undefined, result: DeliveryResult): HookReply | ErrorResponse {
  switch (result.kind) {
    case "accepted":
    case "routed":
      return toAcceptedReply(channel?.answer ?? "outcome", result.outcome);
    case "unverified":
      return toErrorResponse("unauthenticated", "The request could not be verified.");
    case "tooManyItems":
      return toErrorResponse(
        REJECTION_CODES.tooManyItems,
        `The delivery contains more than ${result.limit} items.`,
      );
    case "rejected":
      return {
        ...toErrorResponse(
          REJECTION_CODES.rejected,
          "The channel rejects this delivery, because an item is invalid or matches no definition.",
        ),
        details: result.failures.map(({ item, reason, path, detail }) => ({
          path: `${item === null ? "body" : `items[${item}]`}${path === undefined ? "" : `: ${path}`}`,
          message: `${reason}: ${detail}`,
        })),
      };
    case "handshake":
      return toHandshakeReply(result.reply);
    case "replied":
      return result.reply;
    case "refused":
    case "failed":
      return result.response;
    default:
      return result satisfies never;
  }
}

function toAcceptedReply(answer: Answer, outcome: Outcome): HookReply {
  if (answer === "outcome") return { status: 200, headers: JSON_TYPE, body: JSON.stringify(outcome) };
  return answer === "empty" ? ACCEPTED : toTextReply({ status: 200, headers: NO_HEADERS, ...answer });
}

const toErrorResponse = (code: ErrorCode, message: string): ErrorResponse => ({
  code,
  message,
  headers: NO_HEADERS,
});

type HandshakeReply = Extract<IngestResult, { kind: "handshake" }>["reply"];

function toHandshakeReply(reply: HandshakeReply): HookReply {
  const { status, headers } = reply;
  return status === 204 ? { status, headers: { ...headers, ...NOT_RENDERED } } : toTextReply(reply);
}

/** Browsers must not render a text that a request or a channel's owner chose, because the console has the same origin. */
const NOT_RENDERED = { "content-security-policy": "default-src 'none'; sandbox" };

function toTextReply({
  status,
  contentType,
  headers,
  body,
}: Omit<HandshakeReply, "contentType"> & { readonly contentType: string }): HookReply {
  const type = { "content-type": `${contentType}; charset=utf-8` };
  return { status, headers: { ...headers, ...NOT_RENDERED, ...type }, body };
}

const toErrorReply = (response: ErrorResponse, traceId: string | undefined): HookReply =>
  response === NO_CHANNEL_RESPONSE ? NO_CHANNEL_REPLY : buildErrorReply(response, traceId);

function buildErrorReply(response: ErrorResponse, traceId?: string): HookReply {
  return {
    status: STATUS_OF[response.code],
    headers: { ...toErrorHeaders(response), ...JSON_TYPE },
    body: JSON.stringify(toErrorBody(response, traceId)),
  };
}

function formatReason({ message, details = [] }: ErrorResponse): string {
  if (details.length === 0) return message;
  return [message, ...details.map((one) => `${one.path} ${one.message}`)].join(" ");
}

/** Returns the request as received. The body is empty if it was not read. */
function toRawRequest({ exchange, request, arrivedAtMs, client, requestId, trace }: Arrival): RawRequest {
  if (request !== undefined) return request;
  const { method, target } = exchange;
  return {
    method,
    target,
    headers: exchange.readHeaderValues(),
    body: NO_BYTES,
    arrivedAtMs,
    clientAddress: client.address,
    requestId,
    traceId: trace?.traceId,
  };
}

/** Returns the fields of a log line. The request target is left out, because the channel's address is a credential. */
const createLogFields = ({ exchange, channel, requestId, client, trace }: Arrival, code: ErrorCode) => ({
  requestId,
  ...(trace && { traceId: trace.traceId }),
  code,
  method: exchange.method,
  ...(channel && channelFacts(channel.identity)),
  clientAddress: client.address,
});
