import { z } from "zod";
import { channelKindNameSchema } from "../../../channels/entity.ts";
import { CHANNEL_EXAMPLE, channelInputSchema } from "../../../channels/settings.ts";
import type { BlueprintRow } from "../../../data/tables.ts";
import { channelUidSchema } from "../../../event/channel.ts";
import { definitionSchema } from "../../../event/definition.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { patchOf } from "../../kit/merge.ts";

const MAX_CHANNELS = 100;

const fields = {
  uid: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ . -")
    .optional(),
  title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
  description: z.string().max(4_096).nullable().default(null),
  channels: z
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
    .meta({ example: [CHANNEL_EXAMPLE] }),
};

/** What a blueprint is made of, and what a patched one must still be. */
export const blueprintInputSchema = z.strictObject(fields);

export const blueprintPatchSchema = patchOf(blueprintInputSchema);

/** The blueprint as the API answers it. */
export const blueprintSchema = z
  .object({
    id: id("bp"),
    uid: z.string(),
    title: z.string(),
    description: z.string().nullable(),
    organizationId: id("org"),
    channels: z.array(
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
    ),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Blueprint", description: "What an app and its channels are installed from." });
export type Blueprint = Shown<z.output<typeof blueprintSchema>>;

export function renderBlueprint(row: BlueprintRow): Blueprint {
  const { id, uid, title, description, organizationId, channels, createdAt, updatedAt } = row;
  return {
    id,
    uid,
    title,
    description,
    organizationId,
    channels,
    createdAt: formatTimestamp(createdAt.getTime()),
    updatedAt: formatTimestamp(updatedAt.getTime()),
  };
}
