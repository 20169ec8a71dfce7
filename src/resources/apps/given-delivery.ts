import { z } from "zod";
import type { RawRequest, VerifiedDelivery } from "../../event/received.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";

const values = z.record(z.string().min(1).max(256), z.union([z.string(), z.array(z.string()).max(100)]));

/** Fields that describe a delivery in an API request. Each route adds a `body` field of its own. */
export const givenDelivery = {
  query: z.string().max(8_192).describe("Query string of the URL, without the question mark.").default(""),
  headers: values.describe("Request headers. Names are case-insensitive.").default({}),
  bodyEncoding: z
    .enum(["utf-8", "base64"])
    .describe("Encoding of `body`: text, or base64 for binary data.")
    .default("utf-8"),
} as const;

interface Given extends z.output<z.ZodObject<typeof givenDelivery>> {
  readonly method: string;
  readonly body: string;
}

export function toRawRequest(
  { method, query, headers, body, bodyEncoding }: Given,
  nowMs: number,
): RawRequest {
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    method,
    target: query === "" ? "/" : `/?${query}`,
    headers: Object.assign(Object.create(null), Object.fromEntries(lowered)),
    body: Buffer.from(body, bodyEncoding),
    arrivedAtMs: nowMs,
  };
}

/** Treats the request as verified, and removes the credentials that a verification would read. */
export const skipVerification = ({ sender }: CompiledChannel, request: RawRequest): VerifiedDelivery =>
  sender.reject(request, "verification was skipped").redacted();
