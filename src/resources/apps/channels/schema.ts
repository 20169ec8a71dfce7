import { z } from "zod";
import { channelInputSchema } from "../../../channels/settings.ts";

const connectionId = z
  .string()
  .nullable()
  .default(null)
  .meta({ description: "The connection that its calls carry; of a channel that fetches.", example: null });

/** A channel that is added to an app. */
export const newChannelSchema = channelInputSchema.extend({ connectionId });

/** What of a channel may be changed; uid and kind are for good. */
export const channelContentSchema = newChannelSchema.pick({
  title: true,
  config: true,
  events: true,
  connectionId: true,
});

/** What a merge patch may hold, as far as that can be told before it is applied. */
export const channelPatchSchema = z.strictObject({
  title: z.string().nullable().optional(),
  config: z.record(z.string(), z.unknown()).nullable().optional(),
  events: z.array(z.unknown()).nullable().optional(),
  connectionId: z.string().nullable().optional().meta({ example: null }),
});

/** `?purge=true`: what the channel has published goes with it. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .default("false")
    .transform((purge) => purge === "true"),
});
