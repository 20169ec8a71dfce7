import { z } from "zod";
import { commonSettings } from "../../event/channel.ts";
import { leaveToPreset, senderSettings } from "../../verify/sender-settings.ts";

/** HTTP webhooks for event delivery 1.0.2 section 4.1.2: a DNS expression that names the sending system. */
const originSchema = z
  .string()
  .regex(
    /^(?:\*|(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*)$/,
    "must be a host name, or * for any",
  );

/** The whole `config` of a CloudEvents channel. */
export const cloudEventsSettings = z
  .strictObject({
    ...commonSettings,
    ...senderSettings,
    allowedOrigins: z
      .array(originSchema)
      .max(100)
      .default([])
      .describe(
        "Senders whose validation request (OPTIONS with WebHook-Request-Origin) is granted; * grants any. Without one the address takes POST alone.",
      ),
    batch: z
      .enum(["accept", "refuse"])
      .default("accept")
      .describe(
        "What becomes of batches: accepted, each event on its own (one bad event fails all of them where onInvalid says reject), or answered 415.",
      ),
  })
  .describe("Senders that speak CloudEvents 1.0 over HTTP: binary, structured and batched.")
  .overwrite(leaveToPreset);

export type CloudEventsSettings = z.output<typeof cloudEventsSettings>;
