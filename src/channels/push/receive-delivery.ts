import type { ChannelHandle, HandshakeReply, IngestResult } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { ApiError, type ErrorCode, type ErrorResponse } from "../../http/problem.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { HeldBody } from "../body-budget.ts";
import type { ChannelKindDeps, HookReply, HookRequest } from "../kind.ts";
import { findHeadRejection, readDelivery } from "./read-delivery.ts";

/** The rejected delivery was already counted by `ingest`. */
export interface CountedRejection extends ErrorResponse {
  readonly isCounted: true;
  /** For the log only. The sender does not receive it. */
  readonly reason?: string;
}

/**
 * Creates a function that reads a request, passes it to `ingest` and returns the response. It returns an `ErrorResponse` if the request
 * head is not acceptable or `ingest` rejects the delivery. On any other failure it throws an `ApiError`.
 */
export function createReceiveDelivery<C extends ChannelHandle>({
  ingest,
  bodies,
  clock,
}: Pick<ChannelKindDeps<C>, "ingest" | "bodies" | "clock">) {
  return (
    channel: C,
    { incoming, clientAddress, requestId }: Omit<HookRequest, "outgoing">,
  ): ErrorResponse | Promise<HookReply | ErrorResponse> =>
    findHeadRejection(incoming, channel) ??
    new Promise((resolve, reject) => {
      const held = new HeldBody(bodies, channel.identity.organizationId);
      const failed = (error: unknown): void => {
        held.release();
        reject(error);
      };
      let body: Buffer | undefined;
      const settle = (result: IngestResult): void => {
        held.release();
        // Redis has confirmed the whole delivery, so the body is no longer used. After a failure the body may still be in use and is left
        // to the garbage collector.
        if (result.kind === "accepted" && body !== undefined) freeBuffer(body);
        try {
          resolve(replyTo(channel, result));
        } catch (error) {
          reject(error);
        }
      };
      const take = (request: RawRequest): void => {
        ({ body } = request);
        try {
          // The signal never aborts if the sender disconnects. Once a body was read, its delivery is always processed.
          const result = ingest(
            channel,
            request,
            held.holdsDecodeLock ? releasingLockOnItems(held) : NEVER_ABORTED,
          );
          if (result instanceof Promise) result.then(settle, failed);
          else settle(result);
        } catch (error) {
          failed(error);
        }
      };
      const arrival = { arrivedAtMs: clock(), clientAddress, requestId };
      readDelivery(incoming, channel, arrival, held, { done: take, failed });
    });
}

const NEVER_ABORTED = { signal: new AbortController().signal };
const releasingLockOnItems = (held: HeldBody) => ({
  ...NEVER_ABORTED,
  onItems: () => held.releaseDecodeLock(),
});

/** @throws ApiError 405 when the request has another method */
export function requireMethod({ incoming }: Pick<HookRequest, "incoming">, methods: readonly string[]): void {
  if (methods.includes(incoming.method ?? "")) return;
  const allow = methods.join(", ");
  throw new ApiError("method_not_allowed", `This address only accepts ${allow}.`, { headers: { allow } });
}

const JSON_TYPE = { "content-type": "application/json" };
const ACCEPTED: HookReply = { status: 200, headers: {} };

/** A 200 response promises that every event is on its topic. */
function replyTo(
  { answer }: Pick<ChannelHandle, "answer">,
  result: IngestResult,
): HookReply | CountedRejection {
  switch (result.kind) {
    case "accepted":
      return answer === "empty"
        ? ACCEPTED
        : { status: 200, headers: JSON_TYPE, body: JSON.stringify(result.outcome) };
    case "unverified":
      return rejection("unauthenticated", "The request could not be verified.", { reason: result.message });
    case "tooManyItems":
      return rejection("payload_too_large", `The delivery contains more than ${result.limit} items.`);
    case "rejected":
      return rejection(
        "invalid_parameters",
        "The channel rejects this delivery, because an item is invalid or matches no definition.",
        {
          details: result.failures.map(({ item, reason, path, detail }) => ({
            path: `${item === null ? "body" : `items[${item}]`}${path === undefined ? "" : `: ${path}`}`,
            message: `${reason}: ${detail}`,
          })),
        },
      );
    case "handshake":
      return replyToHandshake(result.reply);
    default:
      return result satisfies never;
  }
}

const rejection = (
  code: ErrorCode,
  message: string,
  more: Pick<CountedRejection, "details" | "reason"> = {},
): CountedRejection => ({ code, message, headers: NO_HEADERS, isCounted: true, ...more });

const NO_HEADERS = {};

/** The reply to a handshake repeats text from the request. It must not be cached or rendered by a browser. */
function replyToHandshake({ status, contentType, headers, body }: HandshakeReply): HookReply {
  const fixed = { "content-security-policy": "default-src 'none'" };
  if (status === 204) return { status, headers: { ...headers, ...fixed } };
  const type = { "content-type": `${contentType}; charset=utf-8` };
  return { status, headers: { ...headers, ...fixed, ...type }, body };
}
