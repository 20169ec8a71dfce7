import { z } from "zod";
import type { FormRow } from "../../data/form-tables.ts";
import { id, type Shown } from "../../http/fields.ts";
import { pageQuery } from "../../http/page.ts";
import { patchOf } from "../kit/merge.ts";
import { times, timesOf } from "../kit/times.ts";
import { type FormContent, formContent, formContentPatch } from "./content.ts";

const blueprintId = z.string().nullable().meta({ description: "A blueprint of the organization." });
const versionParentId = z
  .string()
  .nullable()
  .meta({ description: "The form that this one is a version of; null: it is none." });

/** What may be changed of a form, and what a changed one must still be. */
export const formContentInput = z.strictObject({
  uid: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ . -")
    .optional(),
  title: z.string().min(1).max(255).meta({ example: "Contact" }),
  description: z.string().max(4_096).nullable().default(null),
  blueprintId: blueprintId.default(null),
  content: formContent.default({ items: [], sections: [] }),
});

/** The same when a form is made. */
export const formInput = formContentInput.extend({ versionParentId: versionParentId.default(null) });
export type FormInput = z.output<typeof formInput>;

export const formPatch = patchOf(formContentInput.extend({ content: formContentPatch.optional() }));

export const formsQuery = z.object({
  versionParentId: z.string().optional().meta({ description: "Only the versions of this form." }),
  ...pageQuery,
});
export type FormsQuery = z.output<typeof formsQuery>;

/** The form as the API answers it. */
export const formSchema = z
  .object({
    id: id("form"),
    uid: z.string().meta({ description: "That of the form it is a version of." }),
    title: z.string(),
    description: z.string().nullable(),
    blueprintId,
    organizationId: id("org"),
    createdById: id("acc"),
    updatedById: id("acc"),
    versionParentId,
    content: formContent,
    ...times,
  })
  .meta({ id: "Form", description: "Questions, to be shown to somebody." });
export type Form = Shown<z.output<typeof formSchema>>;

export function renderForm(row: FormRow): Form {
  const { id, uid, title, description, blueprintId, organizationId } = row;
  const { createdById, updatedById, versionParentId } = row;
  return {
    ...{ id, uid, title, description, blueprintId, organizationId },
    ...{ createdById, updatedById, versionParentId },
    // It was checked when it was written.
    content: row.content as FormContent,
    ...timesOf(row),
  };
}
