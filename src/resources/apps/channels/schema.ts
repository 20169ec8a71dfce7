import { z } from "zod";
import { CHANNEL_EXAMPLE, channelInputSchema } from "../../../channels/settings.ts";
import { toPatchSchema } from "../../kit/merge.ts";

const connectionId = z
  .string()
  .nullable()
  .default(null)
  .meta({ description: "The connection that its calls carry; of a channel that fetches.", example: null });

/** A channel that is added to an app. */
export const newChannelSchema = channelInputSchema.extend({ connectionId }).meta({
  id: "NewChannel",
  description: "A channel that is added to an app.",
  configOf: "written",
  example: { ...CHANNEL_EXAMPLE, uid: "second" },
});

/** The parts of a channel that change; uid and kind stay for good. */
export const channelContentSchema = newChannelSchema.pick({
  title: true,
  config: true,
  events: true,
  connectionId: true,
});

export const channelPatchSchema = toPatchSchema(channelContentSchema);
