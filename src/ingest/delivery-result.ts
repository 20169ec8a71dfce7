import type { Answer } from "../event/answer.ts";
import type { IngestResult } from "../event/ingest.ts";
import type { Outcome } from "../event/outcome.ts";
import {
  type ErrorCode,
  type ErrorResponse,
  STATUS_OF,
  toApiError,
  toErrorBody,
  toErrorHeaders,
} from "../http/errors.ts";
import type { HookReply } from "../http/hook-exchange.ts";
import type { CompiledChannel } from "./compile-channel.ts";
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

/** Error codes of deliveries that the channel's settings reject. */
export const REJECTION_CODES = { rejected: "invalid_parameters", tooManyItems: "payload_too_large" } as const;

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

export const isServerError = ({ code }: ErrorResponse): boolean =>
  code === "internal" || code === "unavailable";

export const toDeliveryLabel = (result: DeliveryResult): string =>
  result.kind === "failed" ? result.response.code : result.kind;

/** Returns the response to a delivery. Status 200 promises that every event was written to its topic. */
export function toResponse(
  channel: Pick<CompiledChannel, "answer"> | undefined,
  result: DeliveryResult,
): HookReply | ErrorResponse {
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

export const toErrorReply = (response: ErrorResponse, traceId: string | undefined): HookReply =>
  response === NO_CHANNEL_RESPONSE ? NO_CHANNEL_REPLY : buildErrorReply(response, traceId);

function buildErrorReply(response: ErrorResponse, traceId?: string): HookReply {
  return {
    status: STATUS_OF[response.code],
    headers: { ...toErrorHeaders(response), ...JSON_TYPE },
    body: JSON.stringify(toErrorBody(response, traceId)),
  };
}
