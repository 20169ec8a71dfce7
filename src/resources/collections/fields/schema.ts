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
  description: "No two records have the same value. Not for the kinds `boolean`, `choice` and `json`.",
});

const fields = {
  collectionId: readOnly(id("col")),
  name: z.string().min(1).max(64).meta({
    description: "What records name their value by; unique in its collection.",
    example: "email",
  }),
  description: textUpTo(4_096),
  kind: z.enum(FIELD_KINDS).meta({
    description:
      "What its values are. `date`: RFC 3339 full-date; `dateTime`: RFC 3339, answered in UTC; `url`: http or https; `choice`: one of the options; `json`: anything but null.",
  }),
  options: z.array(z.string().min(1).max(255)).max(MAX_OPTIONS).default([]).meta({
    description: "What there is to choose from; of the kind `choice`, and of no other.",
    example: [],
  }),
  required: z.boolean().default(false).meta({ description: "Every record has a value." }),
  unique: unstored(unique.default(false)),
  /** `unique` is stored here. */
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
    if (kind === "choice" && options.length === 0) issue(["options"], "are needed for the kind choice");
    if (kind !== "choice" && options.length > 0) issue(["options"], "are for the kind choice only");
    for (const [index, option] of options.entries()) {
      if (options.indexOf(option) < index) issue(["options", index], "stands twice");
    }
    if (unique && (kind === "boolean" || kind === "choice" || kind === "json"))
      issue(["unique"], `is not for the kind ${kind}`);
  },
  meta: { id: "CollectionField", description: "What each record of a collection may have a value of." },
});
