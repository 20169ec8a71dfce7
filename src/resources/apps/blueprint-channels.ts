import { z } from "zod";
import { channelKindNameSchema } from "../../channels/entity.ts";
import { channelUidSchema } from "../../event/channel.ts";
import { definitionSchema } from "../../event/definition.ts";

export const blueprintChannels = z.array(
  z
    .object({
      uid: channelUidSchema,
      kind: channelKindNameSchema,
      title: z.string().nullable(),
      config: z.record(z.string(), z.unknown()),
      events: z.array(definitionSchema),
    })
    .meta({
      id: "BlueprintChannel",
      description: "A channel of a blueprint. Installing an app from the blueprint creates the channel.",
      configOf: "answered",
    }),
);
