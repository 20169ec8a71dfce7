import { z } from "zod";
import { channelSchema } from "../../../channels/entity.ts";
import type { AppRow } from "../../../data/tables.ts";
import { id, idExample, type Shown, timestamp } from "../../../http/fields.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { patchOf } from "../../kit/merge.ts";

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

/** What of an app may be changed. */
export const appContentSchema = z.strictObject({
  title: z.string().min(1).max(255),
  description: z.string().max(4_096).nullable().default(null),
  projectId: z.string().min(1).max(255).nullable().default(null),
});

export const appPatchSchema = patchOf(appContentSchema);

/** `?purge=true`: what the app's channels have published goes with it. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .default("false")
    .transform((purge) => purge === "true"),
});

const appFields = {
  id: id("app"),
  uid: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  blueprintId: z.string().nullable(),
  organizationId: id("org"),
  projectId: z.string().nullable(),
  spaceId: id("spc"),
  createdAt: timestamp,
  updatedAt: timestamp,
};

/** The app as the API answers it. */
export const appSchema = z.object(appFields).meta({ id: "App", description: "One install of a blueprint." });
export type App = Shown<z.output<typeof appSchema>>;

/** An app that was just installed. */
export const installedAppSchema = z
  .object({ ...appFields, channels: z.array(channelSchema) })
  .meta({ id: "InstalledApp", description: "An app with the channels that were made for it." });

export function renderApp(row: AppRow): App {
  const { id, uid, title, description, blueprintId, organizationId, projectId, spaceId } = row;
  return {
    id,
    uid,
    title,
    description,
    blueprintId,
    organizationId,
    projectId,
    spaceId,
    createdAt: formatTimestamp(row.createdAt.getTime()),
    updatedAt: formatTimestamp(row.updatedAt.getTime()),
  };
}
