import { z } from "zod";
import { CHANNEL_EXAMPLE, channelInputSchema } from "../../../channels/check-channel.ts";
import type { IntakeSettings } from "../../../event/intake.ts";
import { hidden, json, orElse } from "../../kit/field.ts";
import { organizationId, textUpTo, uidField } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { blueprintChannels } from "../blueprint-channels.ts";

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
        context.addIssue({ code: "custom", path: [index, "uid"], message: `the uid ${uid} is used twice` });
      }
      seen.add(uid);
    });
  })
  .meta({ example: [CHANNEL_EXAMPLE] });

const fields = {
  uid: uidField("blueprint"),
  title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
  description: textUpTo(4_096),
  organizationId,
  channels: json(channels, blueprintChannels),
  /** Settings of the intake, as its owner wrote them. Null if the blueprint has no intake. */
  intake: hidden(json(z.custom<IntakeSettings>().nullable())),
  /** Increases with each write. */
  version: orElse(hidden(z.int()), () => 1),
};

export const blueprint = shape({
  prefix: "bp",
  fields,
  meta: { id: "Blueprint", description: "A template of an app and its channels." },
});
