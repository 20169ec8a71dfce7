import { z } from "zod";
import { channelUidSchema } from "./channel.ts";

const MAX_WAKES = 16;

/** Config field of channel kinds whose deliveries can announce new items of polling channels. */
export const wakesField = z
  .array(channelUidSchema)
  .min(1)
  .max(MAX_WAKES)
  .refine((uids) => new Set(uids).size === uids.length, "must not contain a uid twice")
  .optional()
  .describe(
    "Uids of polling channels of the same app. Each verified delivery makes these channels poll now, for providers whose webhooks only announce changes. Inlet stores the request to poll before it responds 200, and combines requests while one waits. Without event definitions, the delivery is not published. A channel that is paused, stopped or deleted is not polled.",
  );

/** Returns the uids of the channels that a channel wakes. `undefined` for channels that wake none. */
export const readWakes = (config: object): readonly string[] | undefined =>
  "wakes" in config ? wakesField.catch(undefined).parse(config.wakes) : undefined;
