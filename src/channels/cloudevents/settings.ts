import { z } from "zod";
import { commonSettings } from "../../event/channel.ts";
import { inheritPresetVerification, senderSettings } from "../../verify/sender-settings.ts";

/** The origin of a sender, written as a DNS name (HTTP webhooks for event delivery 1.0.2, section 4.1.2). */
const originSchema = z
  .string()
  .regex(
    /^(?:\*|(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*)$/,
    "must be a host name, or * for any",
  );

export const cloudEventsSettings = z
  .strictObject({
    ...commonSettings,
    ...senderSettings,
    allowedOrigins: z
      .array(originSchema)
      .max(100)
      .default([])
      .describe(
        "Origins whose validation request (OPTIONS with WebHook-Request-Origin) is granted; * grants any. If empty, the address only accepts POST.",
      ),
    batch: z
      .enum(["accept", "refuse"])
      .default("accept")
      .describe(
        "Whether to accept batches. `accept` processes each event on its own, but one invalid event rejects the batch if onInvalid is reject. `refuse` responds with 415.",
      ),
  })
  .describe("Senders post CloudEvents 1.0 over HTTP, in binary, structured or batched mode.")
  .overwrite(inheritPresetVerification);

export type CloudEventsSettings = z.output<typeof cloudEventsSettings>;
