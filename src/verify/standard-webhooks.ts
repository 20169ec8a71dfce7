import { z } from "zod";

export const standardWebhooksSettings = z
  .strictObject({
    scheme: z
      .literal("standardWebhooks")
      .describe("Standard Webhooks: v1 (HMAC-SHA256) and v1a (Ed25519) over id, time and body."),
    headerPrefix: z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}-$/, "must be what its headers begin with, such as webhook-")
      .default("webhook-")
      .describe("What stands before id, timestamp and signature in the names of its headers, such as svix-."),
    secretEncoding: z
      .enum(["base64", "utf8"])
      .default("base64")
      .describe(
        "How the secrets of v1 are written, after whsec_ where they have it; those of v1a are public keys, whpk_ and base64.",
      ),
    toleranceSeconds: z
      .int()
      .min(1)
      .max(604_800)
      .default(300)
      .describe("How far the time may be from that of receipt, before or after."),
  })
  .describe("Deliveries signed by the Standard Webhooks specification, whose ids are signed too.");
