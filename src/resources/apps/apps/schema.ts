import { z } from "zod";
import { channelSchema } from "../../../channels/entity.ts";
import { id, idExample } from "../../../http/fields.ts";
import { readOnly } from "../../kit/field.ts";
import { organizationId, textUpTo, UID, UID_MESSAGE } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { channelSettingsSchema } from "./channel-settings.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    apps: TableOf<typeof fields>;
  }
}

const fields = {
  uid: readOnly(z.string()),
  title: z.string().min(1).max(255),
  description: textUpTo(4_096),
  blueprintId: readOnly(z.string().nullable()),
  artifactId: readOnly(
    z
      .string()
      .nullable()
      .meta({ description: "Artifact that the app was installed from. It may have been deleted since." }),
  ),
  organizationId,
  projectId: z.string().min(1).max(255).nullable().default(null),
  spaceId: readOnly(
    id("spc")
      .nullable()
      .meta({ description: "Id of the space that the app belongs to. Null for the system app." }),
  ),
  isSystem: readOnly(
    z.boolean().meta({
      description:
        "Whether this is the system app `inlet`, which each organization has. Inlet publishes detected problems to its channel `problems`. You can subscribe to the system app, but not delete or upgrade it, or change its channels.",
    }),
  ),
};

export const app = shape({
  prefix: "app",
  fields,
  meta: { id: "App", description: "A group of channels, usually installed from a blueprint." },
});

export const appFilters = {
  search: z.string().min(1).max(255).optional().meta({
    description: "Only apps whose `uid` or `title` contains this text. Upper and lower case are the same.",
  }),
};

export interface AppFilters {
  readonly search?: string | undefined;
}

export const installedAppSchema = app.entity
  .extend({ channels: z.array(channelSchema) })
  .meta({ id: "InstalledApp", description: "A new app with its channels." });

export const installSchema = z
  .strictObject({
    artifactId: z.string().optional().describe("Store artifact to install. Alternative to `blueprintId`."),
    blueprintId: z
      .string()
      .optional()
      .meta({ description: "Blueprint to install.", example: idExample("bp") }),
    spaceId: z.string().optional().describe("Space of the new app. Default: the caller's default space."),
    uid: z
      .string()
      .regex(UID, UID_MESSAGE)
      .optional()
      .describe("Name of the app. Several apps may have the same one. Default: the uid of the blueprint."),
    title: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe("Title of the app. Default: the blueprint's title."),
    channels: channelSettingsSchema,
  })
  .superRefine(({ artifactId, blueprintId }, context) => {
    if ((artifactId === undefined) !== (blueprintId === undefined)) return;
    const message = "exactly one of artifactId and blueprintId must be given";
    for (const path of ["artifactId", "blueprintId"])
      context.addIssue({ code: "custom", path: [path], message });
  });
