import type { IncomingMessage } from "node:http";
import type { ChannelHandle } from "../../event/ingest.ts";
import type { RawRequest } from "../../event/received.ts";
import { ValueCollector, type Values } from "../../event/values.ts";
import { ApiError, invalidParameters } from "../../http/problem.ts";
import { type BodyBudget, readWithin } from "./body-budget.ts";
import { readBody } from "./read-body.ts";

/**
 * Reads one request to a push channel within the channel's limits, before anything of it is believed. It reads from Node's
 * own request: a web `Request` body costs about 50 µs more.
 *
 * @throws ApiError 413, 415, 400 where the body is not what its `Content-Encoding` says, 503 where the budget is used up.
 */
export async function readDelivery(
  incoming: IncomingMessage,
  channel: ChannelHandle,
  arrivedAtMs: number,
  budget: BodyBudget,
): Promise<RawRequest> {
  if (!channel.acceptsContentType(incoming.headers["content-type"])) {
    throw new ApiError("unsupported_media_type", "This Content-Type is not accepted.");
  }
  const { maxBodyBytes } = channel.limits;
  const body = await readWithin(budget, incoming, () => readBody(incoming, maxBodyBytes));
  if (body.ok) {
    return {
      method: incoming.method ?? "POST",
      target: incoming.url ?? "/",
      headers: headersOf(incoming),
      body: body.value,
      arrivedAtMs,
    };
  }
  switch (body.error) {
    case "tooLarge":
      // What is left of the body is not read, so nothing can follow it on this connection.
      throw new ApiError("payload_too_large", `The body is larger than ${maxBodyBytes} bytes.`, {
        headers: { connection: "close" },
      });
    case "unknownEncoding":
      throw new ApiError("unsupported_media_type", "This Content-Encoding is not accepted.");
    case "brokenEncoding":
      throw invalidParameters([{ path: "body", message: "is not what its Content-Encoding says" }]);
    case "aborted":
      throw invalidParameters([{ path: "body", message: "ended before it was complete" }]);
    default:
      return body.error satisfies never;
  }
}

/** From `rawHeaders`, since Node joins or drops what repeats. */
function headersOf({ rawHeaders }: IncomingMessage): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), rawHeaders[i + 1] ?? "");
  }
  return values.collected;
}
