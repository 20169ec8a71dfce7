import { channelFacts } from "../event/channel.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { RawRequest, VerifiedDelivery } from "../event/received.ts";
import { type ErrorCode, type ErrorResponse, STATUS_OF } from "../http/errors.ts";
import type { HookExchange, HookReply } from "../http/hook-exchange.ts";
import type { ClientAddress } from "../lib/addresses/client-address.ts";
import type { Clock } from "../lib/clock.ts";
import { createRepeatedLines } from "../lib/repeated-lines.ts";
import type { Log } from "../log.ts";
import { countLatency } from "../metrics/event-counts.ts";
import type { Metrics } from "../metrics.ts";
import type { HeldBody } from "./body/body-budget.ts";
import type { CompiledChannel } from "./compile-channel.ts";
import { createResultCounts, type ResultCountsDeps } from "./count-result.ts";
import type { DeliveryRecorder } from "./delivery-recorder.ts";
import {
  type DeliveryResult,
  isServerError,
  toDeliveryLabel,
  toErrorReply,
  toFailure,
  toResponse,
} from "./delivery-result.ts";
import type { DeliverySpans, SampledTrace, SpanResult } from "./delivery-spans.ts";
import type { RouteResult } from "./route/route-result.ts";

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
  readonly metrics: ResultCountsDeps["metrics"] & Pick<Metrics, "hookSeconds">;
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
  const counting = createResultCounts({ metrics });
  const { countResult, countDrained, countReconciled, countRedriven, countHeld, countUnset } = counting;

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

  /** Ends a redrive, or the first processing of a delivery that was buffered during a pause. */
  function concludeRedriven(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    result: IngestResult,
    { wasPaused = false }: { readonly wasPaused?: boolean },
  ): void {
    if (delivery.traceparent !== undefined) spans?.endRedrive(channel, delivery, toSpanResult(result));
    if (wasPaused) countDrained(channel, result);
    else if (result.kind === "accepted")
      countRedriven(channel, result, delivery.reconciled === undefined ? "published" : "recovered");
  }

  /** Ends the routing of a delivery that its intake has buffered during a pause. */
  function concludeDrained(intake: CompiledChannel, delivery: VerifiedDelivery, result: RouteResult): void {
    if (delivery.traceparent !== undefined) spans?.endRedrive(intake, delivery, toSpanResult(result));
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

function formatReason({ message, details = [] }: ErrorResponse): string {
  if (details.length === 0) return message;
  return [message, ...details.map((one) => `${one.path} ${one.message}`)].join(" ");
}

const NO_BYTES = Buffer.alloc(0);

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
