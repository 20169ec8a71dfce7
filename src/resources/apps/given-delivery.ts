import { z } from "zod";
import type { RawRequest, VerifiedDelivery } from "../../event/received.ts";
import type { CompiledChannel } from "../../ingest/compiled-channel.ts";

const values = z.record(z.string().min(1).max(256), z.union([z.string(), z.array(z.string()).max(100)]));

/** A delivery as a caller of the API writes it, but for its body. */
export const givenDelivery = {
  query: z.string().max(8_192).default("").describe("As in the address, without the question mark."),
  headers: values.default({}).describe("Names in any case."),
  bodyEncoding: z.enum(["utf-8", "base64"]).default("utf-8"),
} as const;

interface Given extends z.output<z.ZodObject<typeof givenDelivery>> {
  readonly method: string;
  readonly body: string;
}

export function requestOf({ method, query, headers, body, bodyEncoding }: Given, nowMs: number): RawRequest {
  const lowered = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    method,
    target: query === "" ? "/" : `/?${query}`,
    headers: Object.assign(Object.create(null), Object.fromEntries(lowered)),
    body: Buffer.from(body, bodyEncoding),
    arrivedAtMs: nowMs,
  };
}

/** The delivery as rules see it, its sender not asked for: without the credentials that its scheme reads. */
export const believed = ({ sender }: CompiledChannel, request: RawRequest): VerifiedDelivery =>
  sender.reject(request, "not asked for").redacted();
