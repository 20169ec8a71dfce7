import { z } from "zod";
import { CHANNEL_EXAMPLE, channelInputSchema } from "../../../channels/check-channel.ts";
import { toPatchSchema } from "../../kit/merge.ts";

const connectionId = z.string().nullable().default(null).meta({
  description:
    "Connection whose credentials the channel sends. Only allowed for channels that fetch their events.",
  example: null,
});

export const newChannelSchema = channelInputSchema.extend({ connectionId }).meta({
  id: "NewChannel",
  description: "A channel to add to an app.",
  configOf: "written",
  example: { ...CHANNEL_EXAMPLE, uid: "second" },
});

/** Channel fields that an update can change. A channel keeps its uid and kind. */
export const channelContentSchema = newChannelSchema.pick({
  title: true,
  config: true,
  events: true,
  connectionId: true,
});

export const channelPatchSchema = toPatchSchema(channelContentSchema);
