import { z } from "zod";
import { channelSchema } from "../../../channels/entity.ts";
import { id, idExample } from "../../../http/fields.ts";
import { readOnly } from "../../kit/field.ts";
import { organizationId, textUpTo } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";

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
      .meta({ description: "The artifact that it was installed from, be it there any more or not." }),
  ),
  organizationId,
  projectId: z.string().min(1).max(255).nullable().default(null),
  spaceId: readOnly(
    id("spc").nullable().meta({ description: "Null: the system app, which is in no space." }),
  ),
  isSystem: readOnly(
    z.boolean().meta({
      description:
        "True of the app `inlet`, one in each organization, to whose channel `problems` Inlet itself publishes. It can be subscribed to, and is neither deleted nor upgraded nor given channels.",
    }),
  ),
};

export const app = shape({
  prefix: "app",
  fields,
  meta: { id: "App", description: "One install of a blueprint." },
});

/** An app that was just installed. */
export const installedAppSchema = app.entity
  .extend({ channels: z.array(channelSchema) })
  .meta({ id: "InstalledApp", description: "An app with the channels that were made for it." });

export const installSchema = z
  .strictObject({
    artifactId: z
      .string()
      .optional()
      .describe("The artifact of a store that it is installed from, instead of a blueprint."),
    blueprintId: z
      .string()
      .optional()
      .meta({ description: "The blueprint that it is installed from.", example: idExample("bp") }),
    spaceId: z.string().optional().describe("Default: the default space of the caller."),
  })
  .superRefine(({ artifactId, blueprintId }, context) => {
    if ((artifactId === undefined) !== (blueprintId === undefined)) return;
    const message = "exactly one of artifactId and blueprintId must be given";
    for (const path of ["artifactId", "blueprintId"])
      context.addIssue({ code: "custom", path: [path], message });
  });
