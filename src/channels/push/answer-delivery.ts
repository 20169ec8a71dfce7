import type { ChannelHandle, HandshakeReply, IngestResult } from "../../event/ingest.ts";
import { ApiError, type ErrorCode } from "../../http/problem.ts";
import type { Finding } from "../../lib/errors.ts";
import type { HookContext } from "../kind.ts";

/** A delivery that `ingest` has refused, and counted. */
export class DeliveryRefusedError extends ApiError {
  /** For the log alone. */
  readonly reason: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    { reason, ...options }: { readonly reason?: string; readonly details?: readonly Finding[] } = {},
  ) {
    super(code, message, options);
    this.reason = reason;
  }
}

/**
 * What a sender is told. 200 is the promise that every event is on its stream.
 *
 * @throws DeliveryRefusedError for all that is not accepted.
 */
export function answerDelivery(
  c: HookContext,
  { answer }: Pick<ChannelHandle, "answer">,
  result: IngestResult,
): Response {
  switch (result.kind) {
    case "accepted":
      return answer === "empty" ? c.body(null, 200) : c.json(result.outcome);
    case "unverified":
      throw new DeliveryRefusedError("unauthenticated", "The request could not be verified.", {
        reason: result.message,
      });
    case "tooManyItems":
      throw new DeliveryRefusedError(
        "payload_too_large",
        `The delivery holds more than ${result.limit} items.`,
      );
    case "rejected":
      throw new DeliveryRefusedError("invalid_parameters", "The channel refuses this delivery.", {
        details: result.failures.map(({ item, reason, path, detail }) => ({
          path: `${item === null ? "body" : `items[${item}]`}${path === undefined ? "" : `: ${path}`}`,
          message: `${reason}: ${detail}`,
        })),
      });
    case "handshake":
      return answerHandshake(result.reply);
    default:
      return result satisfies never;
  }
}

/** What a handshake sends back came from outside: nothing may read it as a page, or keep it. */
function answerHandshake({ status, contentType, headers, body }: HandshakeReply): Response {
  const fixed = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
  };
  if (status === 204) return new Response(null, { status, headers: { ...headers, ...fixed } });
  const type = { "content-type": `${contentType}; charset=utf-8` };
  return new Response(body, { status, headers: { ...headers, ...fixed, ...type } });
}
