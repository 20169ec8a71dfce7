import { z } from "zod";
import type { VerifiedDelivery } from "../../event/received.ts";
import { invalidParameters } from "../../http/errors.ts";
import type { CompiledChannel } from "../../ingest/compile-channel.ts";
import type { Deps } from "../kit/deps.ts";
import { givenDelivery, skipVerification, toRawRequest } from "./given-delivery.ts";

/** Fields of a request that explains a delivery. */
export const explainedDelivery = {
  method: z.string().min(1).max(16).describe("HTTP method of the request.").default("POST"),
  ...givenDelivery,
  body: z.string().describe("Body of the delivery, encoded as `bodyEncoding` states.").default(""),
  verify: z
    .boolean()
    .describe("Whether to verify the sender. With false, the delivery is treated as verified.")
    .default(true),
} as const;

export const verificationSchema = z
  .object({
    result: z.enum(["verified", "refused", "skipped"]),
    message: z.string().nullable().meta({
      description:
        "Reason for the rejection, which the sender does not see. Null if the delivery was not rejected.",
    }),
  })
  .meta({
    description:
      "Verification of the sender. A `refused` delivery receives a 401, or a 405 if the channel does not accept its method, and is not processed.",
  });

export interface VerifiedGiven {
  readonly verification: z.output<typeof verificationSchema>;
  /** `undefined` if the channel refuses the delivery. */
  readonly delivery: VerifiedDelivery | undefined;
}

/** Verifies a delivery in an API request like a received one. @throws ApiError 400 if the body is too large for the channel */
export async function verifyGiven(
  { channelKinds, clock }: Deps,
  channel: CompiledChannel,
  given: z.output<z.ZodObject<typeof explainedDelivery>>,
): Promise<VerifiedGiven> {
  const request = toRawRequest(given, clock());
  const { limits, methods, identity, sender } = channel;
  if (request.body.length > limits.maxBodyBytes) {
    const message = `must not be larger than the channel's limits.maxBodyBytes (${limits.maxBodyBytes})`;
    throw invalidParameters([{ path: "body", message }]);
  }
  if (!given.verify)
    return {
      verification: { result: "skipped", message: null },
      delivery: skipVerification(channel, request),
    };
  // Kinds that fetch their events receive no requests.
  if (channelKinds.get(identity.kind)?.addressed === true && !methods.includes(given.method))
    return refuse(`the channel accepts only ${methods.join(", ")} (\`methods\`)`);
  const verified = await sender.verify(request);
  if (!verified.ok) return refuse(verified.error.message);
  return { verification: { result: "verified", message: null }, delivery: verified.value };
}

const refuse = (message: string): VerifiedGiven => ({
  verification: { result: "refused", message },
  delivery: undefined,
});
