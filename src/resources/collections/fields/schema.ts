import { z } from "zod";
import { id } from "../../../http/fields.ts";
import { hidden, readOnly, unstored } from "../../kit/field.ts";
import { textUpTo } from "../../kit/fields.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { FIELD_KINDS } from "../collection-values.ts";

const MAX_OPTIONS = 200;

declare module "../../../data/tables.ts" {
  interface Tables {
    collectionFields: TableOf<typeof fields>;
  }
}

const unique = z.boolean().meta({
  description:
    "Whether each value may occur only once. Not allowed for the kinds `boolean`, `choice` and `json`.",
});

const fields = {
  collectionId: readOnly(id("col")),
  name: z.string().min(1).max(64).meta({
    description: "The key of the value in records. Unique within the collection.",
    example: "email",
  }),
  description: textUpTo(4_096),
  kind: z.enum(FIELD_KINDS).meta({
    description:
      "The kind of the values. `date` is an RFC 3339 full-date. `dateTime` is an RFC 3339 time, returned in UTC. `url` is an http or https URL. `choice` is one of the options. `json` is any value except null.",
  }),
  options: z.array(z.string().min(1).max(255)).max(MAX_OPTIONS).default([]).meta({
    description: "The possible values. Required for the kind `choice`, and not allowed for other kinds.",
    example: [],
  }),
  required: z.boolean().default(false).meta({ description: "Whether every record must have a value." }),
  unique: unstored(unique.default(false)),
  /** Column that stores the API field `unique`. */
  isUnique: hidden(z.boolean()),
};

export type FieldRow = RowOf<typeof fields>;

export const field = shape({
  prefix: "fld",
  fields,
  inside: { unique },
  check({ kind, options, unique }, context) {
    const issue = (path: (string | number)[], message: string) =>
      context.addIssue({ code: "custom", path, message });
    if (kind === "choice" && options.length === 0) issue(["options"], "are required for the kind choice");
    if (kind !== "choice" && options.length > 0) issue(["options"], "are only allowed for the kind choice");
    for (const [index, option] of options.entries()) {
      if (options.indexOf(option) < index) issue(["options", index], "is listed twice");
    }
    if (unique && (kind === "boolean" || kind === "choice" || kind === "json"))
      issue(["unique"], `is not allowed for the kind ${kind}`);
  },
  meta: { id: "CollectionField", description: "A field of the records of a collection." },
});
