import type { ChannelHandle, HandshakeReply, IngestResult } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { ApiError, type ErrorCode, type ErrorResponse } from "../../http/problem.ts";
import { freeBuffer } from "../../lib/free-buffer.ts";
import { HeldBody } from "../body-budget.ts";
import type { ChannelKindDeps, HookReply, HookRequest } from "../kind.ts";
import { findRefusal, readDelivery } from "./read-delivery.ts";

/** Of a delivery that `ingest` has refused, and counted. */
export interface CountedRefusal extends ErrorResponse {
  readonly isCounted: true;
  /** For the log alone. */
  readonly reason?: string;
}

/**
 * Reads a request within the channel's limits, hands it to `ingest`, and answers what became of it: with a refusal, where that is what is
 * not to be read, or what `ingest` refuses. Rejects by an ApiError for all else that is not accepted.
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
    findRefusal(incoming, channel) ??
    new Promise((resolve, reject) => {
      const held = new HeldBody(bodies, channel.identity.organizationId);
      const failed = (error: unknown): void => {
        held.release();
        reject(error);
      };
      let body: Buffer | undefined;
      const settle = (result: IngestResult): void => {
        held.release();
        // Redis has answered for all of it. What failed may be on its way still, and is left to the garbage collector.
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
          // A sender that hangs up does not undo its delivery: what was read is carried through.
          const result = ingest(channel, request, held.keepsTurn ? untilItems(held) : UNTIL_ANSWERED);
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

const UNTIL_ANSWERED = { signal: new AbortController().signal };
const untilItems = (held: HeldBody) => ({ ...UNTIL_ANSWERED, onItems: () => held.endTurn() });

/** @throws ApiError 405 for a method that is none of those. */
export function requireMethod({ incoming }: Pick<HookRequest, "incoming">, methods: readonly string[]): void {
  if (methods.includes(incoming.method ?? "")) return;
  const allow = methods.join(", ");
  throw new ApiError("method_not_allowed", `This address takes ${allow}.`, { headers: { allow } });
}

const JSON_TYPE = { "content-type": "application/json" };
const ACCEPTED: HookReply = { status: 200, headers: {} };

/** 200 is the promise that every event is on its stream. */
function replyTo(
  { answer }: Pick<ChannelHandle, "answer">,
  result: IngestResult,
): HookReply | CountedRefusal {
  switch (result.kind) {
    case "accepted":
      return answer === "empty"
        ? ACCEPTED
        : { status: 200, headers: JSON_TYPE, body: JSON.stringify(result.outcome) };
    case "unverified":
      return refusal("unauthenticated", "The request could not be verified.", { reason: result.message });
    case "tooManyItems":
      return refusal("payload_too_large", `The delivery holds more than ${result.limit} items.`);
    case "rejected":
      return refusal("invalid_parameters", "The channel refuses this delivery.", {
        details: result.failures.map(({ item, reason, path, detail }) => ({
          path: `${item === null ? "body" : `items[${item}]`}${path === undefined ? "" : `: ${path}`}`,
          message: `${reason}: ${detail}`,
        })),
      });
    case "handshake":
      return replyToHandshake(result.reply);
    default:
      return result satisfies never;
  }
}

const refusal = (
  code: ErrorCode,
  message: string,
  more: Pick<CountedRefusal, "details" | "reason"> = {},
): CountedRefusal => ({ code, message, headers: NO_HEADERS, isCounted: true, ...more });

const NO_HEADERS = {};

/** A handshake's reply repeats text from outside: no browser may render it, no cache keep it. */
function replyToHandshake({ status, contentType, headers, body }: HandshakeReply): HookReply {
  const fixed = { "content-security-policy": "default-src 'none'" };
  if (status === 204) return { status, headers: { ...headers, ...fixed } };
  const type = { "content-type": `${contentType}; charset=utf-8` };
  return { status, headers: { ...headers, ...fixed, ...type }, body };
}
