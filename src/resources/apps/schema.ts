import { z } from "zod";
import type { AppRow } from "../../data/tables.ts";
import { formatTimestamp } from "../../lib/clock.ts";

export const installSchema = z
  .strictObject({
    artifactId: z.string().optional(),
    blueprintId: z.string().optional(),
    spaceId: z.string().optional(),
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

/** What a merge patch may hold, as far as that can be told before it is applied. */
export const appPatchSchema = z.strictObject({
  title: z.string().nullable().optional(),
  description: z.string().nullable().optional(),
  projectId: z.string().nullable().optional(),
});

/** `?purge=true`: what the app's channels have published goes with it. */
export const purgeQuerySchema = z.object({
  purge: z
    .enum(["true", "false"])
    .default("false")
    .transform((purge) => purge === "true"),
});

/** The app as the API answers it. */
export function renderApp(row: AppRow) {
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
