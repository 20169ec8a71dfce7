import { z } from "zod";
import { answerSchema } from "../../event/answer.ts";
import { commonFields } from "../../event/channel.ts";
import { inheritPresetVerification, senderFields } from "../../verify/sender-config.ts";

/** Origin of a sender, as a DNS name (CloudEvents HTTP webhooks 1.0.2, section 4.1.2). */
const originSchema = z
  .string()
  .regex(
    /^(?:\*|(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*)$/,
    "must be a host name, or * for any origin",
  );

export const cloudEventsConfigSchema = z
  .strictObject({
    ...commonFields,
    ...senderFields,
    answer: answerSchema
      .default("empty")
      .describe(
        "Response to an accepted delivery: `empty` is 200 without a body; `outcome` reports the result of each item; an object is a fixed text. Brokers, such as Knative's, accept only an empty body or another CloudEvent.",
      ),
    allowedOrigins: z
      .array(originSchema)
      .max(100)
      .describe(
        "Origins whose validation requests (OPTIONS with WebHook-Request-Origin) are granted. With *, requests from any origin are granted. If empty, the address only accepts POST.",
      )
      .default([]),
    batch: z
      .enum(["accept", "refuse"])
      .describe(
        "Whether to accept batches. `accept` processes each event separately, but if `onInvalid` is `reject`, one invalid event rejects the whole batch. `refuse` rejects batches with 415.",
      )
      .default("accept"),
  })
  .describe("Senders post CloudEvents 1.0 over HTTP, in binary, structured or batched mode.")
  .overwrite(inheritPresetVerification);

export type CloudEventsConfig = z.output<typeof cloudEventsConfigSchema>;
