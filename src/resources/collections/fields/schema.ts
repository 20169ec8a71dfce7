import { z } from "zod";
import type { CollectionFieldRow } from "../../../data/collection-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";
import { FIELD_KINDS } from "../collection-values.ts";

const MAX_OPTIONS = 200;

const kind = z.enum(FIELD_KINDS).meta({
  description:
    "What its values are. `date`: RFC 3339 full-date; `dateTime`: RFC 3339, answered in UTC; `url`: http or https; `choice`: one of the options; `json`: anything but null.",
});

/** What is written of a field, and what a patched one must still be. */
export const fieldInput = z
  .strictObject({
    name: z.string().min(1).max(64).meta({
      description: "What records name their value by; unique in its collection.",
      example: "email",
    }),
    description: z.string().max(4_096).nullable().default(null),
    kind,
    options: z.array(z.string().min(1).max(255)).max(MAX_OPTIONS).default([]).meta({
      description: "What there is to choose from; of the kind `choice`, and of no other.",
      example: [],
    }),
    required: z.boolean().default(false).meta({ description: "Every record has a value." }),
    unique: z.boolean().default(false).meta({
      description: "No two records have the same value. Not for the kinds `boolean`, `choice` and `json`.",
    }),
  })
  .superRefine(({ kind, options, unique }, context) => {
    const issue = (path: (string | number)[], message: string) =>
      context.addIssue({ code: "custom", path, message });
    if (kind === "choice" && options.length === 0) issue(["options"], "are needed for the kind choice");
    if (kind !== "choice" && options.length > 0) issue(["options"], "are for the kind choice only");
    for (const [index, option] of options.entries()) {
      if (options.indexOf(option) < index) issue(["options", index], "stands twice");
    }
    if (unique && (kind === "boolean" || kind === "choice" || kind === "json"))
      issue(["unique"], `is not for the kind ${kind}`);
  });
export type FieldInput = z.output<typeof fieldInput>;

export const fieldPatch = patchOf(fieldInput);

/** The field as the API answers it. */
export const fieldSchema = z
  .object({
    id: id("fld"),
    collectionId: id("col"),
    name: z.string(),
    description: z.string().nullable(),
    kind,
    options: z.array(z.string()),
    required: z.boolean(),
    unique: z.boolean(),
    ...times,
  })
  .meta({ id: "CollectionField", description: "What each record of a collection may have a value of." });
export type Field = Shown<z.output<typeof fieldSchema>>;

/** What is written of a field. */
export function contentOf(row: CollectionFieldRow): FieldInput {
  const { name, description, kind, options, required, isUnique } = row;
  return { name, description, kind, options, required, unique: isUnique };
}

export const renderField = (row: CollectionFieldRow): Field => ({
  ...{ id: row.id, collectionId: row.collectionId },
  ...contentOf(row),
  ...timesOf(row),
});
