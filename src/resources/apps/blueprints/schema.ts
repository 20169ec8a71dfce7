import { z } from "zod";
import { channelKindNameSchema } from "../../../channels/entity.ts";
import { CHANNEL_EXAMPLE, channelInputSchema } from "../../../channels/settings.ts";
import { channelUidSchema } from "../../../event/channel.ts";
import { definitionSchema } from "../../../event/definition.ts";
import { hidden, json, orElse } from "../../kit/field.ts";
import { organizationId, textOf, uidOf } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    blueprints: TableOf<typeof fields>;
  }
}

const MAX_CHANNELS = 100;

const channels = z
  .array(channelInputSchema)
  .max(MAX_CHANNELS)
  .default([])
  .superRefine((channels, context) => {
    const seen = new Set<string>();
    channels.forEach(({ uid }, index) => {
      if (seen.has(uid)) {
        context.addIssue({ code: "custom", path: [index, "uid"], message: `the uid ${uid} stands twice` });
      }
      seen.add(uid);
    });
  })
  .meta({ example: [CHANNEL_EXAMPLE] });

const answeredChannels = z.array(
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
      description: "A channel as apps are installed with it.",
      configOf: "answered",
    }),
);

const fields = {
  uid: uidOf("blueprint"),
  title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
  description: textOf(4_096),
  organizationId,
  channels: json(channels, answeredChannels),
  /** Counts the writes. */
  version: orElse(hidden(z.int()), () => 1),
};

export const blueprint = shape({
  prefix: "bp",
  fields,
  meta: { id: "Blueprint", description: "What an app and its channels are installed from." },
});
